// Which part of a picture is seen, and that chance is a function of (seed, epoch, sample).

#include "decode/crop.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "check.h"
#include "decode/decoder.h"

using flowos::feed::Draws;
using flowos::feed::ImageSettings;
using flowos::feed::Range;
using flowos::feed::Region;
using flowos::feed::region_of;

namespace {

bool is(const Range& range, double begin, double end) {
  return std::fabs(range.begin - begin) < 1e-9 && std::fabs(range.end - end) < 1e-9;
}

// The first numbers of SplitMix64 that its author's splitmix64.c gives for 1234567.
void the_generator_is_splitmix64() {
  Draws draws(1234567);
  CHECK(draws.next() == 6457827717110365317U);
  CHECK(draws.next() == 3203168211198807973U);
  CHECK(draws.next() == 9817491932198370423U);
}

void draws_stay_in_their_limits_and_reach_all_of_them() {
  Draws draws(7, 0, 0);
  double sum = 0.0;
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 10000; ++i) {
    const double drawn = draws.uniform(2.0, 3.0);
    CHECK(drawn >= 2.0 && drawn < 3.0);
    sum += drawn;
    seen.insert(draws.below(5));
  }
  CHECK(std::fabs(sum / 10000 - 2.5) < 0.01);
  CHECK(seen.size() == 5 && *seen.rbegin() == 4);
  CHECK(Draws(1).below(1) == 0);
}

// As torchvision: Resize(256) of 370 x 298 gives 317 x 256, CenterCrop(224) begins at (46, 16).
void the_centre_is_resize_and_center_crop() {
  const Region region = region_of({}, 298, 370, 0, 0);
  CHECK(is(region.x, 46 * 370.0 / 317, 270 * 370.0 / 317));
  CHECK(is(region.y, 16 * 298.0 / 256, 240 * 298.0 / 256));
  CHECK(region.x.first == 0 && region.x.past == 370 && region.y.past == 298);
  CHECK(!region.flip);
}

void the_centre_covers_a_result_that_is_not_square() {
  ImageSettings settings;
  settings.height = 100;
  settings.width = 400;
  settings.centre_share = 1.0;
  const Region region = region_of(settings, 300, 400, 0, 0);
  CHECK(is(region.x, 0, 400));
  CHECK(is(region.y, 100, 200));
}

ImageSettings random_settings() {
  ImageSettings settings;
  settings.crop = ImageSettings::Crop::random;
  settings.flip = true;
  return settings;
}

void random_crops_have_the_areas_and_aspects_that_were_asked_for() {
  const ImageSettings settings = random_settings();
  double least = 1.0;
  double most = 0.0;
  int flips = 0;
  for (std::uint64_t sample = 0; sample < 5000; ++sample) {
    const Region region = region_of(settings, 480, 640, 3, sample);
    const double w = region.x.end - region.x.begin;
    const double h = region.y.end - region.y.begin;
    CHECK(region.x.begin >= 0 && region.x.end <= 640 && region.y.begin >= 0);
    CHECK(region.y.end <= 480);
    // The crop alone is looked at.
    CHECK(region.x.first == region.x.begin && region.y.past == region.y.end);
    CHECK(w / h > 0.74 && w / h < 1.35);
    least = std::fmin(least, w * h / (480 * 640));
    most = std::fmax(most, w * h / (480 * 640));
    flips += region.flip ? 1 : 0;
  }
  CHECK(least > 0.078 && least < 0.09);
  CHECK(most > 0.9 && most <= 1.0);
  CHECK(flips > 2350 && flips < 2650);
}

void chance_depends_on_seed_epoch_and_sample_only() {
  ImageSettings settings = random_settings();
  std::set<std::pair<double, double>> seen;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      for (std::uint64_t sample = 0; sample < 3; ++sample) {
        settings.seed = seed;
        const Region region = region_of(settings, 1000, 1000, epoch, sample);
        const Region again = region_of(settings, 1000, 1000, epoch, sample);
        CHECK(region.x.begin == again.x.begin && region.flip == again.flip);
        seen.emplace(region.x.begin, region.y.end);
      }
    }
  }
  CHECK(seen.size() == 27);
}

// Every draw fits with a chance of 1/4, so all ten fail with one of (3/4)^10.
void ten_draws_are_tried_before_the_middle() {
  ImageSettings settings = random_settings();
  settings.area = {0.0, 4.0};
  settings.aspect = {1.0, 1.0};
  int middles = 0;
  for (std::uint64_t sample = 0; sample < 20000; ++sample) {
    middles += is(region_of(settings, 1000, 1000, 0, sample).x, 0, 1000) ? 1 : 0;
  }
  CHECK(std::fabs(middles / 20000.0 - std::pow(0.75, 10)) < 0.005);
}

// No crop of such a picture has an aspect that is allowed and 8 % of the area: the middle.
void a_picture_that_is_too_long_falls_back_to_its_middle() {
  ImageSettings settings = random_settings();
  const Region wide = region_of(settings, 30, 3000, 0, 1);
  CHECK(is(wide.y, 0, 30));
  CHECK(is(wide.x, 1480, 1520));
  const Region high = region_of(settings, 3000, 30, 0, 1);
  CHECK(is(high.x, 0, 30));
  CHECK(is(high.y, 1480, 1520));
  settings.area = {4.0, 4.0};
  CHECK(is(region_of(settings, 30, 30, 0, 1).x, 0, 30));
}

void one_pixel_is_a_picture() {
  for (const auto crop :
       {ImageSettings::Crop::centre, ImageSettings::Crop::random, ImageSettings::Crop::none}) {
    ImageSettings settings;
    settings.crop = crop;
    settings.centre_share = 1.0;
    const Region region = region_of(settings, 1, 1, 0, 0);
    CHECK(is(region.x, 0, 1));
    CHECK(is(region.y, 0, 1));
  }
}

}  // namespace

int main() {
  the_generator_is_splitmix64();
  draws_stay_in_their_limits_and_reach_all_of_them();
  the_centre_is_resize_and_center_crop();
  the_centre_covers_a_result_that_is_not_square();
  random_crops_have_the_areas_and_aspects_that_were_asked_for();
  chance_depends_on_seed_epoch_and_sample_only();
  ten_draws_are_tried_before_the_middle();
  a_picture_that_is_too_long_falls_back_to_its_middle();
  one_pixel_is_a_picture();
}
