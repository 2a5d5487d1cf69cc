// Files of the safetensors format: what is written is read again, other libraries' files are read, and whatever the
// format does not allow is refused with a message that names the file, what was expected and what came.
#include "examples/safetensors.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tools/cli/scratch_directory.hpp"

namespace {

using examples::file_error;
using examples::read_tensors;
using examples::stored_tensor;
using examples::tensor_file;
using examples::write_tensors;
using repdl::tools::scratch_directory;

std::ptrdiff_t files_in(const scratch_directory& dir) {
  const std::filesystem::directory_iterator all(dir.path());
  return std::distance(begin(all), end(all));
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A file with this header and these elements.
std::string bytes_of(const std::string& header, const std::string& elements) {
  std::string all;
  for (int i = 0; i < 8; ++i) all += static_cast<char>(header.size() >> 8 * i);
  return all + header + elements;
}

template <class T>
stored_tensor tensor(const std::string& name, const std::vector<T>& values, const repdl::sizes& shape) {
  stored_tensor t{name, repdl::dtype_of<T>, shape, std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}

std::string refusal(const std::string& path) {
  try {
    read_tensors(path);
  } catch (const file_error& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("safetensors: every type and shape is read as it was written") {
  const scratch_directory dir;
  tensor_file file;
  file.metadata = {{"epoch", "12"}, {"", "\"quoted\" \\ \n \xc3\xa9"}};
  file.tensors.push_back(tensor<float>("floats", {1.0f, -0.0f, std::numeric_limits<float>::quiet_NaN()}, {3, 1}));
  file.tensors.push_back(tensor<double>("doubles", {5e-324}, {}));
  file.tensors.push_back(
      tensor<std::int64_t>("integers", {-1, 1, std::numeric_limits<std::int64_t>::min(), 7}, {2, 2}));
  file.tensors.push_back(
      tensor<std::int32_t>("short integers", {-1, std::numeric_limits<std::int32_t>::min(), 7}, {3}));
  file.tensors.push_back(tensor<repdl::f16>("half", {{0x3c00}, {0x0001}}, {2}));
  file.tensors.push_back(tensor<repdl::bf16>("brain", {{0xff80}}, {1, 1, 1, 1, 1, 1, 1, 1}));
  file.tensors.push_back({"flags", repdl::dtype::boolean, {3}, {std::byte{1}, std::byte{0}, std::byte{1}}});
  file.tensors.push_back(tensor<float>("none \xe2\x82\xac \"'", {}, {4, 0, 2}));
  write_tensors(dir.file("a"), file);
  CHECK(files_in(dir) == 1);
  const tensor_file back = read_tensors(dir.file("a"));
  CHECK(back.metadata == file.metadata);
  REQUIRE(back.tensors.size() == file.tensors.size());
  for (const stored_tensor& want : file.tensors) {
    int found = 0;
    for (const stored_tensor& t : back.tensors) {
      if (t.name != want.name) continue;
      ++found;
      CHECK(t.type == want.type);
      CHECK(t.shape == want.shape);
      CHECK(t.bytes == want.bytes);
    }
    CHECK(found == 1);
  }
  // The same contents, the same bytes.
  write_tensors(dir.file("b"), file);
  CHECK(get(dir.file("a")) == get(dir.file("b")));
  write_tensors(dir.file("b"), back);
  CHECK(get(dir.file("a")) == get(dir.file("b")));
  // Nothing at all is a file, too.
  write_tensors(dir.file("b"), {});
  CHECK(get(dir.file("b")) == bytes_of("{}      ", ""));
  CHECK(read_tensors(dir.file("b")).tensors.empty());
}

TEST_CASE("safetensors: the layout on the disk") {
  const scratch_directory dir;
  tensor_file file;
  file.metadata["k"] = "v";
  file.tensors.push_back(tensor<float>("w", {1.0f, -2.0f}, {1, 2}));
  file.tensors.push_back(tensor<std::int64_t>("n", {258}, {}));
  write_tensors(dir.file("a"), file);
  const std::string header = R"({"__metadata__":{"k":"v"},"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("w":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}})";
  std::string padded = header;
  padded.resize((header.size() + 7) / 8 * 8, ' ');
  using namespace std::string_literals;
  CHECK(get(dir.file("a")) == bytes_of(padded, "\x02\x01\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\xc0"s));
}

TEST_CASE("safetensors: files that another program may have written") {
  const scratch_directory dir;
  using namespace std::string_literals;
  const std::string path = dir.file("other");
  // The bytes that the Python package safetensors 0.8 writes for three small arrays of ours.
  put(path,
      bytes_of(R"({"__metadata__":{"made by":"safetensors"},"count":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
               R"("layer.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},)"
               R"("mask":{"dtype":"BOOL","shape":[3],"data_offsets":[24,27]}})",
               "\x03\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f\0\0\x80\x7f\x01\0\x01"s));
  const tensor_file file = read_tensors(path);
  CHECK(file.metadata == std::map<std::string, std::string>{{"made by", "safetensors"}});
  REQUIRE(file.tensors.size() == 3);
  CHECK(file.tensors[0].name == "count");
  CHECK(file.tensors[0].bytes == tensor<std::int64_t>("", {3}, {}).bytes);
  CHECK(file.tensors[1].name == "layer.weight");
  CHECK(file.tensors[1].shape == repdl::sizes{2, 2});
  CHECK(file.tensors[1].bytes ==
        tensor<float>("", {1.0f, -2.0f, 0.5f, std::numeric_limits<float>::infinity()}, {2, 2}).bytes);
  CHECK(file.tensors[2].bytes == std::vector<std::byte>{std::byte{1}, std::byte{0}, std::byte{1}});

  // Allowed, if unusual: entries in any order, spaces, escapes, tensors without elements, any byte as true.
  put(path, bytes_of(R"({ "b" : {"shape":[1],"data_offsets":[1,5],"dtype":"F32"},
                         "e":{"dtype":"F64","shape":[0,3],"data_offsets":[5,5]},
                         "\u00e9\n":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]} }   )",
                     "\x02\0\0\x80\x3f"s));
  const tensor_file odd = read_tensors(path);
  REQUIRE(odd.tensors.size() == 3);
  CHECK(odd.metadata.empty());
  CHECK(odd.tensors[0].name == "\xc3\xa9\n");
  CHECK(odd.tensors[0].bytes == std::vector<std::byte>{std::byte{1}});
  CHECK(odd.tensors[1].name == "b");
  CHECK(odd.tensors[1].bytes == tensor<float>("", {1.0f}, {}).bytes);
  CHECK(odd.tensors[2].shape == repdl::sizes{0, 3});
}

TEST_CASE("safetensors: malformed files are refused, by name") {
  const scratch_directory dir;
  const std::string path = dir.file("bad");
  const auto tensors = [](const std::string& list) { return "{" + list + "}"; };
  const std::string good = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const struct {
    std::string bytes, message;
  } cases[] = {
      {"", "expected the 8 bytes of a header's length, got 0 bytes"},
      {"1234567", "expected the 8 bytes of a header's length, got 7 bytes"},
      {std::string(8, '\xff') + "{}", "expected a header of at most 100000000 bytes, got 18446744073709551615"},
      {bytes_of(tensors(good), "").substr(0, 30), "expected a header of 54 bytes, got 22 bytes in all"},
      {std::string("\x93NUMPY\x01\x00\x76\x00{'descr'", 18), "expected a header of at most 100000000 bytes, got "},
      {bytes_of("", ""), "expected a header that starts with '{', got another one"},
      {bytes_of(" {}", ""), "expected a header that starts with '{', got another one"},
      {bytes_of("[]", ""), "expected a header that starts with '{', got another one"},
      {bytes_of("{", ""), "expected a header in JSON, got parse error at line 1, column 2"},
      {bytes_of("{}x", ""), "expected a header in JSON, got parse error at line 1, column 3"},
      {bytes_of("{\"\xff\":1}", ""), "expected a header in JSON, got parse error at line 1, column 3"},
      {bytes_of(tensors("\"a\":NaN"), ""), "expected a header in JSON, got parse error"},
      {bytes_of(tensors(good + "," + good), "1234"), "expected each key once in its header, got 'a' twice"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]})"), "1234"),
       "expected each key once in its header, got 'dtype' twice"},
      {bytes_of(tensors(R"("__metadata__":{"k":"1","k":"2"})"), ""),
       "expected each key once in its header, got 'k' twice"},
      {bytes_of("{\"a\":" + std::string(100000, '['), ""),
       "expected a header of objects with arrays in them, got deeper ones"},
      {bytes_of(tensors(R"("__metadata__":[])"), ""),
       "expected an object of texts for '__metadata__', got a value of type array"},
      {bytes_of(tensors(R"("__metadata__":{"k":1})"), ""),
       "expected texts in '__metadata__', got a value of type number for 'k'"},
      {bytes_of(tensors("\"a\":3"), ""), "expected dtype, shape and data_offsets for 'a', got 3"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1]})"), ""),
       R"(expected dtype, shape and data_offsets for 'a', got {"dtype":"F32","shape":[1]})"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})"), "1234"),
       "expected dtype, shape and data_offsets for 'a', got {"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1],"offsets":[0,4]})"), "1234"),
       "expected dtype, shape and data_offsets for 'a', got {"},
      {bytes_of(tensors(R"("a":{"dtype":"U32","shape":[1],"data_offsets":[0,4]})"), "1234"),
       "expected a dtype F16, BF16, F32, F64, I64, I32, BOOL, F8_E4M3 or F8_E5M2 for 'a', got \"U32\""},
      {bytes_of(tensors(R"("a":{"dtype":7,"shape":[1],"data_offsets":[0,4]})"), "1234"),
       "expected a dtype F16, BF16, F32, F64, I64, I32, BOOL, F8_E4M3 or F8_E5M2 for 'a', got 7"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":1,"data_offsets":[0,4]})"), "1234"),
       "expected a shape of integers from 0 for 'a', got 1"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), "1234"),
       "expected a shape of integers from 0 for 'a', got -1"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})"), "1234"),
       "expected a shape of integers from 0 for 'a', got 1.0"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})"), "1234"),
       "expected at most 8 sizes for 'a', got 9"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"), ""),
       "expected a tensor of at most 2^48 bytes for 'a', got [4294967296,4294967296]"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})"), ""),
       "expected a tensor of at most 2^48 bytes for 'a', got [0,4294967296,4294967296]"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})"), "1234"),
       "expected a tensor of at most 2^48 bytes for 'a', got [18446744073709551615]"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0]})"), "1234"),
       "expected two data_offsets for 'a', got [0]"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,"4"]})"), "1234"),
       "expected data_offsets of integers from 0 for 'a', got \"4\""},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), "1234"),
       "expected 8 bytes between the data_offsets of 'a', got [0,4]"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), "1234"),
       "expected 4 bytes between the data_offsets of 'a', got [4,0]"},
      {bytes_of(tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "12345678"),
       "expected the elements of 'a' at offset 0, got 4"},
      {bytes_of(tensors(good + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]})"), "123456"),
       "expected the elements of 'b' at offset 4, got 2"},
      {bytes_of(tensors(good), "123"), "expected 4 bytes of elements, got 3"},
      {bytes_of(tensors(good), "12345"), "expected 4 bytes of elements, got 5"},
      {bytes_of("{}", "x"), "expected 0 bytes of elements, got 1"},
  };
  for (const auto& c : cases) {
    put(path, c.bytes);
    const std::string got = refusal(path);
    CAPTURE(got);
    CHECK(got.starts_with(path + ": " + c.message));
  }
  CHECK(refusal(dir.file("missing")) ==
        dir.file("missing") + ": expected a readable file, got No such file or directory");
  CHECK(refusal(dir.file("")) == dir.file("") + ": expected a readable file, got Is a directory");
  // Cut short anywhere, it is refused.
  const std::string whole = bytes_of(tensors(good), "1234");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    put(path, whole.substr(0, n));
    CHECK(refusal(path).starts_with(path + ": expected "));
  }
}

TEST_CASE("safetensors: only files that have an end are read") {
  const scratch_directory dir;
  REQUIRE(::mkfifo(dir.file("pipe").c_str(), 0600) == 0);  // nobody writes: to wait for it would be for ever
  for (const std::string& path : {std::string("/dev/zero"), dir.file("pipe")}) {
    CHECK(refusal(path) == path + ": expected a readable file, got a pipe, a socket or a device");
  }
  // Sizes are known to fit before anything is read: a file of 2^40 bytes that takes none on the disk.
  put(dir.file("long"), bytes_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"));
  std::filesystem::resize_file(dir.file("long"), std::uintmax_t{1} << 40);
  CHECK(refusal(dir.file("long")).ends_with(": expected 4 bytes of elements, got 1099511627714"));
}

tensor_file file_of_many(int many) {
  tensor_file file;
  for (int i = 0; i < many; ++i) {
    file.tensors.push_back(tensor<float>("tensor " + std::to_string(i), {static_cast<float>(i)}, {1}));
    file.metadata[std::to_string(i)] = "text";
  }
  return file;
}

TEST_CASE("safetensors: the time is linear in the number of tensors, and of keys") {
  const scratch_directory dir;
  const auto time_of = [&](int many) {
    const tensor_file file = file_of_many(many);
    const std::clock_t begin = std::clock();
    write_tensors(dir.file("a"), file);
    const tensor_file back = read_tensors(dir.file("a"));
    const std::clock_t end = std::clock();
    CHECK(back.metadata == file.metadata);
    REQUIRE(back.tensors.size() == static_cast<std::size_t>(many));
    for (const int i : {0, 1, many / 2, many - 1}) {
      CHECK(back.tensors[static_cast<std::size_t>(i)].name == file.tensors[static_cast<std::size_t>(i)].name);
      CHECK(back.tensors[static_cast<std::size_t>(i)].bytes == file.tensors[static_cast<std::size_t>(i)].bytes);
    }
    return static_cast<double>(end - begin);
  };
  // 16 times as many take 16 times as long, or 256 times. What else the machine does can make a pair look slow, not every one.
  bool linear = false;
  for (int i = 0; i < 8 && !linear; ++i) linear = time_of(32000) < 64 * std::max(time_of(2000), 1.0);
  CHECK(linear);
}

TEST_CASE("safetensors: a file that cannot be written leaves what was there") {
  const scratch_directory dir;
  const std::string path = dir.file("a");
  tensor_file file;
  file.tensors.push_back(tensor<float>("w", {1.0f}, {}));
  write_tensors(path, file);
  const std::string before = get(path);
  const auto attempt = [&](const tensor_file& f, const std::string& to) -> std::string {
    try {
      write_tensors(to, f);
    } catch (const file_error& e) {
      return e.what();
    }
    return "nothing thrown";
  };

  tensor_file twice = file;
  twice.tensors.push_back(twice.tensors[0]);
  CHECK(attempt(twice, path) == path + ": expected each name once, and not '__metadata__', got 'w'");
  tensor_file reserved;
  reserved.tensors.push_back(tensor<float>("__metadata__", {1.0f}, {}));
  CHECK(attempt(reserved, path) == path + ": expected each name once, and not '__metadata__', got '__metadata__'");
  tensor_file short_of;
  short_of.tensors.push_back(tensor<float>("w", {1.0f}, {2}));
  CHECK(attempt(short_of, path) == path + ": expected 8 bytes for 'w', got 4");
  tensor_file not_text = file;
  not_text.metadata["k"] = "\xff";
  CHECK(attempt(not_text, path) == path + ": expected names and metadata in UTF-8, got other bytes");
  CHECK(attempt(file, dir.file("no/such/place")) ==
        dir.file("no/such/place") + ": expected a place to write, got No such file or directory");
  CHECK(std::filesystem::create_directory(dir.file("directory")));
  CHECK(attempt(file, dir.file("directory")) ==
        dir.file("directory") + ": expected a place to write, got Is a directory");
  CHECK(get(path) == before);
  CHECK(files_in(dir) == 2);  // no temporary file stays
}

}  // namespace

TEST_SUITE_END();
