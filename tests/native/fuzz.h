#pragma once

// A fuzzer is one function of any bytes and the inputs to begin with. With clang's libFuzzer
// (FLOWOS_FUZZ, tools/fuzz) it runs for as long as one likes; without, fuzz_main.cpp gives it a
// fixed sequence of mutated inputs, as one of the tests.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

std::vector<std::string> fuzz_seeds();
