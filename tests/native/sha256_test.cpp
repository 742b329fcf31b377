// Against the examples of FIPS 180-4 and RFC 4231.
#include "base/sha256.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "check.h"

using flowos::feed::Digest;

namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte b : digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<std::size_t>(b) >> 4];
    text += kDigits[std::to_integer<std::size_t>(b) & 15];
  }
  return text;
}

void digests_are_those_of_the_standard() {
  using flowos::feed::sha256;
  CHECK(hex(sha256({})) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256(bytes("abc"))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(bytes(std::string(1000000, 'a')))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

void keyed_digests_are_those_of_the_standard() {
  using flowos::feed::hmac_sha256;
  CHECK(hex(hmac_sha256(bytes("Jefe"), bytes("what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string long_key(131, '\xaa');
  CHECK(hex(hmac_sha256(bytes(long_key),
                        bytes("Test Using Larger Than Block-Size Key - Hash Key First"))) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

void only_equal_bytes_are_equal() {
  using flowos::feed::equal_in_constant_time;
  CHECK(equal_in_constant_time(bytes("same"), bytes("same")));
  CHECK(!equal_in_constant_time(bytes("same"), bytes("sane")));
  CHECK(!equal_in_constant_time(bytes("same"), bytes("sam")));
}

}  // namespace

int main() {
  digests_are_those_of_the_standard();
  keyed_digests_are_those_of_the_standard();
  only_equal_bytes_are_equal();
}
