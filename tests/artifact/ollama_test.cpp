// SPDX-License-Identifier: Apache-2.0
// Ollama's store: names, manifests, blobs, and what a damaged store says.
#include "artifact/ollama.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "artifact/lock.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "tests/testing/golden.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;
using testing::MadeFolder;

std::string ids(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding.id + " ";
  return text;
}

TEST(OllamaNames, WhereManifestsLie) {
  EXPECT_EQ(ollama_manifest_path("llama3.2"), "manifests/registry.ollama.ai/library/llama3.2/latest");
  EXPECT_EQ(ollama_manifest_path("llama3.2:1b"), "manifests/registry.ollama.ai/library/llama3.2/1b");
  EXPECT_EQ(ollama_manifest_path("me/own:q4"), "manifests/registry.ollama.ai/me/own/q4");
  EXPECT_EQ(ollama_manifest_path("hf.co/org/name:Q4_K_M"), "manifests/hf.co/org/name/Q4_K_M");
  EXPECT_EQ(ollama_manifest_path("localhost:5000/a/b"), "manifests/localhost:5000/a/b/latest");
  for (const char* name :
       {"", ":tag", "a:", "../x", "a/../b", "a/b/c/d", "/etc", "a:../../x", "a b", "..", ".hidden"})
    EXPECT_FALSE(ollama_manifest_path(name)) << name;
}

class Store : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("OLLAMA_MODELS", store_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("OLLAMA_MODELS"); }

  // Puts the blob and returns its layer.
  std::string layer(const std::string& kind, const std::string& content) const {
    const std::string digest = sha256_hex(std::as_bytes(std::span(content)));
    store_.put("blobs/sha256-" + digest, content);
    return R"({"mediaType":"application/vnd.ollama.image.)" + kind + R"(","digest":"sha256:)" + digest +
           R"(","size":)" + std::to_string(content.size()) + "}";
  }
  void put_manifest(const std::string& layers) const {
    store_.put("manifests/registry.ollama.ai/library/tiny/latest",
               R"({"schemaVersion":2,"layers":[)" + layers + "]}");
  }
  std::shared_ptr<const Artifact> open_it(const std::string& name = "ollama:tiny") const {
    auto artifact = open(name);
    EXPECT_TRUE(artifact) << artifact.error().describe();
    return artifact ? *artifact : nullptr;
  }
  static std::string model() {
    const auto text = read_file(testing::golden_path("artifacts/gguf_ok_v3/model.gguf"));
    EXPECT_TRUE(text);
    return text.value_or("");
  }

  MadeFolder store_;
};

TEST_F(Store, ModelIsOpenedInPlace) {
  put_manifest(layer("model", model()) + "," + layer("template", "{{ .Prompt }}") + "," +
               layer("params", R"({"stop":["x"]})") + "," + layer("license", "Apache") + "," +
               layer("system", "be kind"));
  const auto artifact = open_it();
  EXPECT_EQ(ids(artifact->findings()), "");
  EXPECT_EQ(artifact->form(), Form::kGguf);
  EXPECT_EQ(artifact->tensors().size(), 12U);
  EXPECT_TRUE(artifact->data(artifact->tensors().front()));
  ASSERT_EQ(artifact->files().size(), 6U);
  EXPECT_EQ(artifact->files()[0].role, FileRole::kIndex);
  EXPECT_EQ(artifact->files()[1].role, FileRole::kWeights);
  EXPECT_EQ(artifact->files()[2].role, FileRole::kTemplate);
  EXPECT_EQ(artifact->files()[3].role, FileRole::kGenerationConfig);
  EXPECT_EQ(artifact->files()[4].role, FileRole::kLicense);
  EXPECT_EQ(artifact->text_file(artifact->files()[2].path).value_or(""), "{{ .Prompt }}");
  EXPECT_EQ(artifact->files()[2].path, "blobs/sha256-" + artifact->files()[2].sha256);
  EXPECT_EQ(ids(deep_findings(*artifact)), "");
}

// Its names view the one mapping of the blob.
TEST_F(Store, AModelThatIsNamedTwiceIsReadOnce) {
  put_manifest(layer("model", model()) + "," + layer("model", model()) + "," + layer("projector", model()));
  const auto artifact = open_it();
  EXPECT_EQ(ids(artifact->findings()), "OLLAMA_LAYER OLLAMA_LAYER ");
  ASSERT_EQ(artifact->tensors().size(), 12U);
  for (const Tensor& tensor : artifact->tensors()) EXPECT_EQ(artifact->find(tensor.name), &tensor);
}

TEST_F(Store, CompanionsAreToldNotCounted) {
  put_manifest(layer("model", model()) + "," + layer("projector", model() + "x") + "," +
               layer("adapter", model() + "y"));
  const auto artifact = open_it();
  EXPECT_EQ(ids(artifact->findings()), "OLLAMA_PROJECTOR OLLAMA_ADAPTER ");
  EXPECT_EQ(artifact->tensors().size(), 12U);
}

TEST_F(Store, DamagedStores) {
  const std::string whole = layer("model", model());
  const auto damaged = [&](const std::string& layers) {
    put_manifest(layers);
    return ids(open_it()->findings());
  };
  const std::string other(64, 'a');
  std::string missing = whole, outside = whole, short_size = whole;
  missing.replace(missing.find("sha256:") + 7, 64, other);
  outside.replace(outside.find("sha256:"), 71, "sha256:../../../etc/passwd");
  short_size.replace(short_size.find("\"size\":") + 7, 1, "9");
  EXPECT_EQ(damaged(missing), "OLLAMA_BLOB_MISSING ");
  EXPECT_EQ(damaged(outside), "OLLAMA_MANIFEST ");
  EXPECT_EQ(damaged(short_size), "OLLAMA_BLOB_SIZE ");
  EXPECT_EQ(damaged(""), "OLLAMA_NO_MODEL ");
  EXPECT_EQ(damaged(layer("template", "x")), "OLLAMA_NO_MODEL ");
  EXPECT_EQ(damaged("7"), "OLLAMA_LAYER OLLAMA_MANIFEST ");
  EXPECT_EQ(damaged(layer("model", "not GGUF at all")), "GGUF_MAGIC ");
  EXPECT_EQ(damaged(whole + "]"), "OLLAMA_MANIFEST ");
}

TEST_F(Store, ABlobThatIsNamedTwiceIsReadOnce) {
  const std::string whole = layer("model", model());
  put_manifest(whole + "," + whole + "," + whole);
  const auto artifact = open_it();
  EXPECT_EQ(ids(artifact->findings()), "OLLAMA_LAYER OLLAMA_LAYER ");
  EXPECT_EQ(artifact->tensors().size(), 12U);
  for (const Tensor& tensor : artifact->tensors()) EXPECT_EQ(artifact->find(tensor.name), &tensor);
}

TEST_F(Store, TextsThatTheStoresEngineCannotRead) {
  const std::string whole = layer("model", model());
  const auto told = [&](const std::string& kind, const std::string& content) {
    put_manifest(whole + "," + layer(kind, content));
    return ids(open_it()->findings());
  };
  EXPECT_EQ(told("params", "{bad"), "OLLAMA_PARAMS ");
  EXPECT_EQ(told("params", "[]"), "OLLAMA_PARAMS ");
  EXPECT_EQ(told("template", "{{ .Prompt }}{{ if"), "OLLAMA_TEMPLATE ");
  EXPECT_EQ(told("template", "{{ .Prompt }} }}"), "");
}

TEST_F(Store, ALockRecordOfAnotherModelIsHeldAgainstIt) {
  put_manifest(layer("model", model()));
  const std::string lock = (store_.path() / "x.lock").string();
  ASSERT_TRUE(write_file(lock, R"({"schema":"plimsoll.lock/1","repo":"org/m","commit":")" +
                                   std::string(40, 'a') +
                                   R"(","files":[{"path":"config.json","bytes":3,"sha256":null}]})"));
  const auto artifact = open("ollama:tiny", {.lock = lock});
  ASSERT_TRUE(artifact) << artifact.error().describe();
  EXPECT_EQ(ids((*artifact)->findings()), "LOCK_MISMATCH LOCK_MISMATCH LOCK_NO_DIGEST ");
  ASSERT_TRUE((*artifact)->lock());
  EXPECT_EQ((*artifact)->lock()->repo, "org/m");
}

// A record of the store's own blobs: those files are found where the store keeps them.
TEST_F(Store, ALockRecordOfItsBlobsIsHeldAgainstTheirContent) {
  const std::string text = model(), digest = sha256_hex(std::as_bytes(std::span(text)));
  put_manifest(layer("model", text));
  const auto held = [&](const std::string& sha256) {
    const std::string lock = (store_.path() / "x.lock").string();
    EXPECT_TRUE(write_file(lock, R"({"schema":"plimsoll.lock/1","repo":"org/m","commit":")" +
                                     std::string(40, 'a') + R"(","files":[{"path":"blobs/sha256-)" + digest +
                                     R"(","bytes":)" + std::to_string(text.size()) + R"(,"sha256":")" +
                                     sha256 + R"("}]})"));
    const auto artifact = open("ollama:tiny", {.lock = lock, .checks_digests = true});
    EXPECT_TRUE(artifact);
    return artifact ? ids((*artifact)->findings()) : "";
  };
  EXPECT_EQ(held(digest), "");
  EXPECT_EQ(held(std::string(64, 'b')), "LOCK_MISMATCH ");
}

TEST_F(Store, ABlobOfOtherContentIsFoundByReadingIt) {
  const std::string text = model();
  put_manifest(layer("model", text));
  std::string changed = text;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  store_.put("blobs/sha256-" + sha256_hex(std::as_bytes(std::span(text))), changed);
  const auto artifact = open_it();
  EXPECT_EQ(ids(artifact->findings()), "");
  EXPECT_EQ(ids(deep_findings(*artifact)), "SHA256_MISMATCH ");
}

TEST_F(Store, NamesThatAreNotThere) {
  for (const char* name : {"ollama:none", "ollama:", "ollama:../x"}) {
    const auto artifact = open(name);
    ASSERT_FALSE(artifact) << name;
    EXPECT_EQ(artifact.error().code, ErrorCode::kMalformed);
    EXPECT_FALSE(artifact.error().fix.empty());
  }
}

}  // namespace
}  // namespace plimsoll::artifact
