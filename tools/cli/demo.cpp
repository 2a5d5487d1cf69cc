#include "tools/cli/demo.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "examples/cnn.hpp"
#include "examples/contrast.hpp"
#include "librepdl/dynamic.hpp"
#include "librepdl/version.hpp"
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/scratch_directory.hpp"

namespace repdl::tools {
namespace {

using examples::cnn_settings;
using examples::cnn_training;
using examples::training_result;

// "94.9 %", without floating-point arithmetic.
std::string percent(std::int64_t part, std::int64_t whole) {
  const std::int64_t tenths = (part * 1000 + whole / 2) / whole;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

std::string thread_count(int threads) { return std::to_string(threads) + (threads == 1 ? " thread" : " threads"); }

// "cpu avx2, 1 thread" or "cuda:0, NVIDIA H200".
std::string place_of(const context& ctx) {
  std::string name = name_of(ctx.where());
  if (ctx.where().kind == device_kind::cpu) return name + " " + ctx.isa() + ", " + thread_count(ctx.threads());
  for (const device_info& d : devices()) {
    if (d.where == ctx.where()) return name + ", " + d.name;
  }
  return name;
}

bool restricts_to_one_backend(const arguments& args) {
  return args.has("--backend") || args.has("--isa") || args.has("--threads");
}

// The configurations that are compared, as far as the arguments leave them open.
std::vector<context_options> configurations(const arguments& args, const context_options& given, int all_threads) {
  std::vector<context_options> all;
  if (given.where.kind == device_kind::cpu) {
    for (const isa_info& set : instruction_sets()) {
      if (!set.available || (!given.isa.empty() && set.name != given.isa)) continue;
      std::vector<int> threads{1, std::max(2, all_threads)};
      if (args.has("--threads")) threads = {all_threads};
      for (const int t : threads) {
        context_options o = given;
        o.isa = set.name;
        o.threads = t;
        all.push_back(o);
      }
    }
  }
  if (given.where.kind == device_kind::cuda || !restricts_to_one_backend(args)) {
    for (const device_info& d : devices()) {
      if (d.where.kind != device_kind::cuda) continue;
      context_options o;
      o.where = d.where;
      all.push_back(o);
    }
  }
  return all;
}

void print_epoch(const examples::epoch_report& r) {
  std::printf("   %5d   %14.4f   %lld of %lld (%s)\n", r.epoch, static_cast<double>(r.loss),
              static_cast<long long>(r.correct), static_cast<long long>(r.tests), percent(r.correct, r.tests).c_str());
  std::fflush(stdout);
}

// Of trainings with so many epochs in all. Lines come often: nobody who waits for a demonstration knows how long it
// takes.
progress training_progress(std::size_t epochs) {
  constexpr double seconds_between_lines = 4;
  return {"epochs of training", static_cast<std::int64_t>(epochs), seconds_between_lines};
}

struct files {
  std::string resume;  // empty: from the seed
  std::string save;    // after every epoch; empty: not
};

// Its end, and the fingerprint after each of the epochs that it did.
struct shown_training {
  training_result end;
  std::map<int, std::string> after;
};

shown_training show_training(context& ctx, const cnn_settings& settings, const files& f) {
  const examples::digit_data& data = examples::digits();
  auto training = f.resume.empty()
                      ? std::make_unique<cnn_training>(ctx, data, settings)
                      : std::make_unique<cnn_training>(ctx, data, settings, examples::read_tensors(f.resume), f.resume);
  if (training->epoch() > settings.epochs) {
    throw examples::file_error(f.resume, "a training of at most " + std::to_string(settings.epochs) + " epochs",
                               std::to_string(training->epoch()));
  }
  // Where it cannot be saved is known before anything was computed.
  if (!f.save.empty()) examples::write_tensors(f.save, training->checkpoint());
  std::printf("librepdl %s: every result is the exact one, rounded once; so it is the same on every machine.\n\n",
              std::string(version()).c_str());
  std::printf(
      "1. Training\n\n"
      "   A small convolutional network learns to read handwritten digits: %lld images of 8 x 8 pixels to\n"
      "   learn from, %lld others as the test. Running on %s.\n\n",
      static_cast<long long>(data.train.size()), static_cast<long long>(data.test.size()), place_of(ctx).c_str());
  const stopwatch watch;
  if (!f.resume.empty()) std::printf("   Continued from %s, after epoch %d.\n\n", f.resume.c_str(), training->epoch());
  std::printf("   epoch   loss per image   test images read correctly\n");
  std::fflush(stdout);
  constexpr int every = 5;
  const int first = training->epoch() + 1;
  shown_training shown;
  progress bar = training_progress(static_cast<std::size_t>(settings.epochs - training->epoch()));
  while (training->epoch() < settings.epochs) {
    const examples::epoch_report r = training->run_epoch();
    shown.after[r.epoch] = training->result().fingerprint;
    bar.add(1);
    if (r.epoch == first || r.epoch == settings.epochs || r.epoch % every == 0) bar.aside([&] { print_epoch(r); });
    if (!f.save.empty()) examples::write_tensors(f.save, training->checkpoint());
  }
  bar.clear();
  shown.end = training->result();
  std::printf("\n   %.1f s\n", watch.seconds());
  if (!f.save.empty()) std::printf("   Saved in %s.\n", f.save.c_str());
  std::printf("\n");
  return shown;
}

void explain_fingerprint(const std::string& expected, bool published) {
  std::printf(
      "   A fingerprint is the SHA-256 of every bit of the trained weights and of the outputs for the test\n"
      "   images: change one bit of one number, and it is another fingerprint. %s:\n\n"
      "   %s\n\n",
      published ? "librepdl publishes this one" : "The training above ended in this one", expected.c_str());
}

struct timed_training {
  std::string place;
  std::string fingerprint;
  double seconds;
};

// Returns how many runs differ from `expected`. Those of one thread go side by side.
int show_everywhere(const std::vector<context_options>& runs, const cnn_settings& settings,
                    const std::string& expected) {
  progress bar = training_progress(runs.size() * static_cast<std::size_t>(settings.epochs));
  const auto train = [&settings, &bar](const context_options& o) {
    context ctx(o);
    const stopwatch watch;
    const training_result result =
        examples::train_cnn(ctx, examples::digits(), settings, [&bar](const examples::epoch_report&) { bar.add(1); });
    return timed_training{place_of(ctx), result.fingerprint, watch.seconds()};
  };
  int different = 0;
  const auto show = [&](const timed_training& t) {
    const bool same = t.fingerprint == expected;
    different += same ? 0 : 1;
    bar.aside([&] {
      std::printf("   %-24s   %s...   %-9s %6.1f s\n", t.place.c_str(), t.fingerprint.substr(0, 16).c_str(),
                  same ? "the same" : "DIFFERENT", t.seconds);
      std::fflush(stdout);
    });
  };
  const auto alone = [](const context_options& o) { return o.where.kind == device_kind::cpu && o.threads == 1; };
  std::vector<std::future<timed_training>> side_by_side;
  for (const context_options& o : runs) {
    if (alone(o)) side_by_side.push_back(std::async(std::launch::async, train, o));
  }
  for (auto& f : side_by_side) show(f.get());
  for (const context_options& o : runs) {
    if (!alone(o)) show(train(o));
  }
  std::printf("\n");
  return different;
}

// One training, of which every run does a part. Returns whether it ended in `expected`, and went by the fingerprints of
// the training that was not interrupted.
bool show_relay(const std::vector<context_options>& runs, const cnn_settings& settings, const shown_training& whole,
                const std::string& expected) {
  std::printf(
      "   One training, handed on through a checkpoint file (safetensors, which other libraries read too), and\n"
      "   compared with the one above wherever it is handed on.\n\n");
  std::fflush(stdout);
  const scratch_directory dir;
  const std::string file = dir.file("checkpoint.safetensors");
  const examples::digit_data& data = examples::digits();
  const auto legs = std::min<int>(static_cast<int>(runs.size()), settings.epochs);
  std::string fingerprint;
  bool same = true;
  progress bar = training_progress(static_cast<std::size_t>(settings.epochs));
  for (int leg = 0; leg < legs; ++leg) {
    context ctx(runs[static_cast<std::size_t>(leg)]);
    const stopwatch watch;
    auto training = leg == 0 ? std::make_unique<cnn_training>(ctx, data, settings)
                             : std::make_unique<cnn_training>(ctx, data, settings, examples::read_tensors(file), file);
    const int first = training->epoch() + 1;
    const int last = settings.epochs * (leg + 1) / legs;
    while (training->epoch() < last) {
      training->run_epoch();
      bar.add(1);
    }
    examples::write_tensors(file, training->checkpoint());
    fingerprint = training->result().fingerprint;
    const bool same_here = fingerprint == whole.after.at(last);
    same = same && same_here;
    bar.aside([&] {
      std::printf("   %-24s   epochs %2d to %2d     %-9s %6.1f s\n", place_of(ctx).c_str(), first, last,
                  same_here ? "the same" : "DIFFERENT", watch.seconds());
      std::fflush(stdout);
    });
  }
  same = same && fingerprint == expected;
  std::printf("   %-24s   %s...   %s\n\n", "at the end", fingerprint.substr(0, 16).c_str(),
              same ? "the same" : "DIFFERENT");
  return same;
}

void show_contrast(cnn_settings settings, int section) {
  settings.epochs = std::min(settings.epochs, 8);  // enough to part, and soon done
  std::printf(
      "%d. The contrast: ordinary float32 loops\n\n"
      "   The same data, the same initial weights, the same formulas; sums are loops that add one term after\n"
      "   the other, as usual. Mathematically, the order of the terms does not matter. %d epochs:\n\n",
      section, settings.epochs);
  std::fflush(stdout);
  const examples::digit_data& data = examples::digits();
  progress bar = training_progress(2 * static_cast<std::size_t>(settings.epochs));
  const auto train = [&](examples::summation order) {
    return examples::train_ordinary(data, settings, order, [&bar] { bar.add(1); });
  };
  // Side by side: each is one thread.
  auto other = std::async(std::launch::async, train, examples::summation::backwards);
  const auto forwards = train(examples::summation::forwards);
  const auto backwards = other.get();
  bar.clear();
  context ctx;
  for (const auto& [name, run] :
       {std::pair{"first term to last", &forwards}, std::pair{"last term to first", &backwards}}) {
    const const_tensor_view identity[] = {run->weights, run->test_outputs};
    std::int64_t correct = 0;
    for (std::size_t i = 0; i < run->answers.size(); ++i) correct += run->answers[i] == data.test.labels[i] ? 1 : 0;
    std::printf("   %-24s   %s...   %lld of %lld correct\n", name, fingerprint(ctx, identity).substr(0, 16).c_str(),
                static_cast<long long>(correct), static_cast<long long>(data.test.size()));
  }
  std::size_t different = 0;
  double largest = 0;
  for (std::size_t i = 0; i < forwards.weights.size(); ++i) {
    const double gap = std::fabs(static_cast<double>(forwards.weights[i]) - static_cast<double>(backwards.weights[i]));
    different += gap != 0 ? 1 : 0;
    largest = std::max(largest, gap);
  }
  std::printf("\n   %zu of %zu weights differ, by up to %.2g.\n\n", different, forwards.weights.size(), largest);
}

}  // namespace

int run_demo(std::span<const std::string_view> args) {
  constexpr int most_epochs = 10000;
  const arguments parsed("demo", args,
                         {{"--backend"},
                          {"--isa"},
                          {"--threads"},
                          {"--epochs"},
                          {"--save"},
                          {"--resume"},
                          {"--quick", false},
                          {"--no-contrast", false}});
  parsed.expect_positional(0, 0, "options only");
  cnn_settings settings;
  const int default_epochs = settings.epochs;
  settings.epochs = static_cast<int>(parsed.integer("--epochs", default_epochs, 1, most_epochs));
  const bool published = settings.epochs == default_epochs;
  const context_options given = parsed.context();
  context first(given);
  const files named{.resume = std::string(parsed.value("--resume").value_or("")),
                    .save = std::string(parsed.value("--save").value_or(""))};
  for (const std::string_view option : {"--save", "--resume"}) {
    if (parsed.value(option) && parsed.value(option)->empty()) usage("demo", option, "a file", "''");
  }

  const shown_training shown = show_training(first, settings, named);
  const training_result& trained = shown.end;
  const std::string expected(published ? examples::published_cnn_fingerprint() : trained.fingerprint);
  int different = trained.fingerprint != expected ? 1 : 0;
  std::size_t trainings = 1;
  if (!named.save.empty() || !named.resume.empty()) {
    std::printf("   %s   %s\n\n", trained.fingerprint.c_str(),
                !published       ? "is the fingerprint"
                : different == 0 ? "the same as published"
                                 : "DIFFERENT from the published one");
  } else {
    const std::vector<context_options> runs = configurations(parsed, given, first.threads());
    int section = 2;
    if (!parsed.has("--quick")) {
      std::printf("%d. The same training, everywhere\n\n", section++);
      explain_fingerprint(expected, published);
      std::fflush(stdout);
      trainings += runs.size();
      different += show_everywhere(runs, settings, expected);
    }
    std::printf("%d. Stopped, saved and continued elsewhere\n\n", section++);
    if (parsed.has("--quick")) explain_fingerprint(expected, published);
    ++trainings;
    different += show_relay(runs, settings, shown, expected) ? 0 : 1;
    std::string why_no_gpu;
    if (!restricts_to_one_backend(parsed) && devices(&why_no_gpu).size() == 1) {
      std::printf("   No GPU was compared: %s.\n\n", why_no_gpu.c_str());
    }
    if (!parsed.has("--no-contrast")) show_contrast(settings, section);
  }

  if (different != 0) {
    std::printf("FAILED: %d of %zu trainings ended in another fingerprint.\n", different, trainings);
    return exit_mismatch;
  }
  if (trainings == 1) {
    std::printf("DONE: epoch %d%s.\n", settings.epochs, published ? ", the last" : "");
    return 0;
  }
  std::printf("PASSED: %zu trainings, one fingerprint: %s.\n", trainings,
              published ? "the published one" : "every bit is the same");
  return 0;
}

}  // namespace repdl::tools
