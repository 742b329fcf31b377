// The sum is the double nearest to the exact one, whatever the order of its terms and however they
// are divided.

#include "base/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "check.h"

namespace {

using flowos::solve::ExactSum;
using Limits = std::numeric_limits<double>;

double sum(const std::vector<double>& terms) {
  ExactSum exact;
  for (const double term : terms) exact.add(term);
  return exact.value();
}

void two_terms_are_added_as_the_processor_does() {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const auto one = std::bit_cast<double>(random());
    // As large as the other one, or nearly, in half of the cases.
    const std::uint64_t near = std::bit_cast<std::uint64_t>(one) + (random() % 64 << 52);
    const auto other = std::bit_cast<double>(i % 2 == 0 ? random() : near ^ random() >> 12);
    if (!std::isfinite(one) || !std::isfinite(other)) continue;
    CHECK(sum({one, other}) == one + other);
    CHECK(sum({one, -other}) == one - other);
  }
}

void halves_go_to_the_even_neighbour() {
  const double half = Limits::epsilon() / 2;
  CHECK(sum({1, half}) == 1);
  CHECK(sum({1, half, half * 0x1p-900}) == 1 + Limits::epsilon());
  CHECK(sum({1 + Limits::epsilon(), half}) == 1 + 2 * Limits::epsilon());
  CHECK(sum({-1, -half}) == -1);
  CHECK(sum({2 - Limits::epsilon(), half}) == 2);
}

void the_ends_of_the_range_are_in_it() {
  const double tiny = Limits::denorm_min();
  CHECK(sum({}) == 0);
  CHECK(sum({tiny}) == tiny);
  CHECK(sum({-tiny, -tiny}) == -2 * tiny);
  CHECK(sum({Limits::min(), -tiny}) == Limits::min() - tiny);
  CHECK(sum({1e308, tiny, -1e308}) == tiny);
  CHECK(sum({Limits::max(), Limits::max()}) == Limits::infinity());
  CHECK(sum({-Limits::max(), -Limits::max()}) == -Limits::infinity());
  CHECK(sum({Limits::max(), Limits::max(), -Limits::max()}) == Limits::max());
}

void what_is_not_finite_stays() {
  CHECK(sum({1, Limits::infinity(), 2}) == Limits::infinity());
  CHECK(sum({-Limits::infinity(), 1}) == -Limits::infinity());
  CHECK(std::isnan(sum({Limits::infinity(), -Limits::infinity()})));
  CHECK(std::isnan(sum({Limits::quiet_NaN(), Limits::infinity()})));
}

void order_and_division_do_not_matter() {
  std::mt19937_64 random(2);
  std::vector<double> terms;
  for (int i = 0; i < 20000; ++i) {
    const auto exponent = static_cast<int>(random() % 1200) - 600;
    const double term = std::ldexp(static_cast<double>(random() >> 11), exponent);
    terms.push_back(term);
    if (i > 0) terms.push_back(-term);  // all but the first go away
  }
  const double left = terms.front();
  for (int turn = 0; turn < 5; ++turn) {
    std::shuffle(terms.begin(), terms.end(), random);
    CHECK(sum(terms) == left);
    // As ranks do it: their limbs are added.
    std::vector<ExactSum> parts(7);
    for (const double term : terms) parts[random() % parts.size()].add(term);
    ExactSum all;
    ExactSum reduced;
    for (const ExactSum& part : parts) {
      all.add(part);
      for (std::size_t i = 0; i < part.limbs().size(); ++i) reduced.limbs()[i] += part.limbs()[i];
    }
    CHECK(all.value() == left);
    CHECK(reduced.value() == left);
  }
}

void many_terms_of_one_sign_are_carried() {
  ExactSum exact;
  for (int i = 0; i < 3000000; ++i) exact.add(0x1.fffffffffffffp+52);
  CHECK(exact.value() == 3000000 * 0x1.fffffffffffffp+52);
  for (int i = 0; i < 3000001; ++i) exact.add(-0x1.fffffffffffffp+52);
  CHECK(exact.value() == -0x1.fffffffffffffp+52);
}

}  // namespace

int main() {
  two_terms_are_added_as_the_processor_does();
  halves_go_to_the_even_neighbour();
  the_ends_of_the_range_are_in_it();
  what_is_not_finite_stays();
  order_and_division_do_not_matter();
  many_terms_of_one_sign_are_carried();
}
