// SPDX-License-Identifier: Apache-2.0
// How fast is a real tokenizer on real text? Loads it, encodes a corpus once cold and some times warm,
// decodes what came out. One thread; times are CPU time of the process. usage: plimsoll_tokens_perf TOKENIZER
// CORPUS [WARM_PASSES]   (documents of CORPUS are separated by NUL bytes) Prints `name value` lines;
// ids_sha256 is over all ids as 32-bit little-endian numbers, for comparison with peers.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/hash.h"
#include "text/text.h"

namespace plimsoll::text {
namespace {

using Ids = std::vector<TokenId>;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Corpus {
  std::vector<std::string> documents;
  std::size_t bytes = 0;
};

Corpus read_corpus(const char* path) {
  std::ifstream file(path, std::ios::binary);
  Corpus corpus;
  for (std::string document; std::getline(file, document, '\0');) {
    corpus.bytes += document.size();
    corpus.documents.push_back(std::move(document));
  }
  return corpus;
}

// One pass over all documents: MB/s; the ids stay in `ids`, one list per document.
double encode_pass(const Tokenizer& tokenizer, const Corpus& corpus, std::vector<Ids>& ids) {
  ids.clear();
  ids.reserve(corpus.documents.size());
  const double start = cpu_seconds();
  for (const std::string& document : corpus.documents)
    ids.push_back(tokenizer.encode(document, {false, true}));
  return static_cast<double>(corpus.bytes) / 1e6 / (cpu_seconds() - start);
}

double decode_pass(const Tokenizer& tokenizer, const std::vector<Ids>& ids) {
  std::size_t bytes = 0;
  const double start = cpu_seconds();
  for (const Ids& document : ids) bytes += tokenizer.decode(document, false).size();
  return static_cast<double>(bytes) / 1e6 / (cpu_seconds() - start);
}

std::string digest(const std::vector<Ids>& ids) {
  static_assert(std::endian::native == std::endian::little, "the digest is over little-endian numbers");
  Ids all;
  for (const Ids& document : ids) all.insert(all.end(), document.begin(), document.end());
  std::printf("ids %zu\n", all.size());
  return sha256_hex(std::as_bytes(std::span(all)));
}

void print_spread(const char* name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf("%s_mb_s %.2f\n%s_min_mb_s %.2f\n%s_max_mb_s %.2f\n", name, values[values.size() / 2], name,
              values.front(), name, values.back());
}

int measure(const char* model, const char* corpus_path, int passes) {
  const Corpus corpus = read_corpus(corpus_path);
  if (corpus.bytes == 0) {
    std::fprintf(stderr, "%s: no documents\n", corpus_path);
    return 2;
  }
  const double start = cpu_seconds();
  auto artifact = artifact::open(model);
  if (!artifact) {
    std::fprintf(stderr, "%s\n", artifact.error().describe().c_str());
    return 2;
  }
  auto tokenizer = load_tokenizer(**artifact);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().describe().c_str());
    return 2;
  }
  std::printf("load_ms %.1f\ncompiler %s\n", (cpu_seconds() - start) * 1e3, __VERSION__);
  std::vector<Ids> ids;
  std::printf("bytes %zu\ncold_mb_s %.2f\n", corpus.bytes, encode_pass(**tokenizer, corpus, ids));
  std::vector<double> warm, decode;
  for (int i = 0; i < passes; ++i) {
    warm.push_back(encode_pass(**tokenizer, corpus, ids));
    decode.push_back(decode_pass(**tokenizer, ids));
  }
  print_spread("warm", warm);
  print_spread("decode", decode);
  std::printf("ids_sha256 %s\n", digest(ids).c_str());
  return 0;
}

}  // namespace
}  // namespace plimsoll::text

int main(int argc, char** argv) {
  const int passes = argc == 4 ? std::atoi(argv[3]) : 5;
  if (argc < 3 || argc > 4 || passes < 1) {
    std::fprintf(stderr, "usage: %s TOKENIZER CORPUS [WARM_PASSES]\n", argv[0]);
    return 2;
  }
  return plimsoll::text::measure(argv[1], argv[2], passes);
}
