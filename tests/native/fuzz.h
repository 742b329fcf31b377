#pragma once

// A fuzzer is a function of any bytes, and its seeds. With clang's libFuzzer (FLOWOS_FUZZ,
// tools/fuzz) it runs without limit; else fuzz_main.cpp gives it a fixed sequence of mutated
// inputs, as one of the tests.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

std::vector<std::string> fuzz_seeds();
