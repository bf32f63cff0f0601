// SPDX-License-Identifier: Apache-2.0
// The rows of licenses.h. What a row says is our reading of the published text; where the text was not at
// hand the row's terms are kUnknown and only the name is known. `source` is where the text is published.
#include "facts/licenses.h"

namespace plimsoll::facts {
namespace {

constexpr Permission Y = Permission::kYes, N = Permission::kNo, C = Permission::kConditional,
                     U = Permission::kUnknown;

constexpr std::string_view kStandard = "https://spdx.org/licenses, the text of this name";
constexpr std::string_view kCreative = "https://creativecommons.org/licenses, the legal code of this name";
constexpr std::string_view kNameOnly =
    "https://huggingface.co/docs/hub/repositories-licenses: a name used there; its text was not read";
constexpr std::string_view kDate = "2026-11-29";

constexpr std::string_view kNotice = "keep the licence and copyright notices";
constexpr std::string_view kAttribution = "name the author and link the licence";
constexpr std::string_view kShareAlike = "name the author; what is made from it carries the same licence";
constexpr std::string_view kNonCommercial = "no commercial use; name the author";
constexpr std::string_view kCopyleft =
    "who passes it or a derivative on does so under the same licence, with the source";
constexpr std::string_view kRail =
    "use restrictions of the licence's attachment bind users and all derivatives";
constexpr std::string_view kLlama =
    "acceptable use policy; a licence of its own from 700 million monthly users on; keep the notice, show "
    "\"Built with Llama\", and let derivatives' names begin with Llama";
constexpr std::string_view kLlama2 =
    "acceptable use policy; a licence of its own from 700 million monthly users on; outputs must not improve "
    "other language models; keep the notice";
constexpr std::string_view kResearch = "research and non-commercial use only";

constexpr LicenseFacts kLicenses[] = {
    // Permissive.
    {"apache-2.0", "Apache License 2.0", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"mit", "MIT License", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"bsd", "BSD licence", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"bsd-2-clause", "BSD 2-Clause", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"bsd-3-clause", "BSD 3-Clause", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"bsd-3-clause-clear", "BSD 3-Clause Clear", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"isc", "ISC License", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"zlib", "zlib License", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"bsl-1.0", "Boost Software License 1.0", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"postgresql", "PostgreSQL License", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"ncsa", "NCSA License", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"afl-3.0", "Academic Free License 3.0", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"artistic-2.0", "Artistic License 2.0", Y, Y, Y, "changed versions are marked as such", false, kStandard,
     kDate},
    {"ecl-2.0", "Educational Community License 2.0", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"ms-pl", "Microsoft Public License", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"ofl-1.1", "SIL Open Font License 1.1", Y, Y, C,
     "derivatives keep the licence and may not use reserved names", false, kStandard, kDate},
    {"unlicense", "The Unlicense", Y, Y, Y, "", false, kStandard, kDate},
    {"wtfpl", "WTFPL", Y, Y, Y, "", false, kStandard, kDate},
    {"cc0-1.0", "CC0 1.0", Y, Y, Y, "", false, kCreative, kDate},
    {"pddl", "Public Domain Dedication and Licence", Y, Y, Y, "", false, kStandard, kDate},
    {"cdla-permissive-1.0", "CDLA Permissive 1.0", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"cdla-permissive-2.0", "CDLA Permissive 2.0", Y, Y, Y, kNotice, false, kStandard, kDate},
    {"odc-by", "Open Data Commons Attribution", Y, Y, Y, kAttribution, false, kStandard, kDate},
    {"etalab-2.0", "Etalab Open License 2.0", Y, Y, Y, kAttribution, false,
     "https://spdx.org/licenses/etalab-2.0.html", kDate},
    {"openmdw-1.0", "OpenMDW License 1.0", Y, Y, Y, kNotice, false, "https://openmdw.ai", kDate},
    {"modified-mit", "MIT with an attribution clause for large products", C, Y, Y,
     "products above the text's limits of users or revenue show the model's name", false,
     "https://huggingface.co/moonshotai/Kimi-K2-Instruct/blob/main/LICENSE", kDate},
    // Creative Commons.
    {"cc", "Creative Commons, kind not stated", U, U, U, "", false, kNameOnly, kDate},
    {"cc-by-2.0", "CC BY 2.0", Y, Y, Y, kAttribution, false, kCreative, kDate},
    {"cc-by-2.5", "CC BY 2.5", Y, Y, Y, kAttribution, false, kCreative, kDate},
    {"cc-by-3.0", "CC BY 3.0", Y, Y, Y, kAttribution, false, kCreative, kDate},
    {"cc-by-4.0", "CC BY 4.0", Y, Y, Y, kAttribution, false, kCreative, kDate},
    {"cc-by-sa-3.0", "CC BY-SA 3.0", Y, Y, C, kShareAlike, false, kCreative, kDate},
    {"cc-by-sa-4.0", "CC BY-SA 4.0", Y, Y, C, kShareAlike, false, kCreative, kDate},
    {"cc-by-nd-4.0", "CC BY-ND 4.0", Y, Y, N, "no derivatives may be passed on; name the author", false,
     kCreative, kDate},
    {"cc-by-nc-2.0", "CC BY-NC 2.0", N, C, C, kNonCommercial, false, kCreative, kDate},
    {"cc-by-nc-3.0", "CC BY-NC 3.0", N, C, C, kNonCommercial, false, kCreative, kDate},
    {"cc-by-nc-4.0", "CC BY-NC 4.0", N, C, C, kNonCommercial, false, kCreative, kDate},
    {"cc-by-nc-sa-2.0", "CC BY-NC-SA 2.0", N, C, C, "no commercial use; the same licence for derivatives",
     false, kCreative, kDate},
    {"cc-by-nc-sa-3.0", "CC BY-NC-SA 3.0", N, C, C, "no commercial use; the same licence for derivatives",
     false, kCreative, kDate},
    {"cc-by-nc-sa-4.0", "CC BY-NC-SA 4.0", N, C, C, "no commercial use; the same licence for derivatives",
     false, kCreative, kDate},
    {"cc-by-nc-nd-3.0", "CC BY-NC-ND 3.0", N, C, N, "no commercial use, no derivatives may be passed on",
     false, kCreative, kDate},
    {"cc-by-nc-nd-4.0", "CC BY-NC-ND 4.0", N, C, N, "no commercial use, no derivatives may be passed on",
     false, kCreative, kDate},
    // Copyleft.
    {"gpl", "GNU GPL, version not stated", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"gpl-2.0", "GNU GPL 2.0", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"gpl-3.0", "GNU GPL 3.0", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"agpl-3.0", "GNU AGPL 3.0", C, C, C, "the source is also owed to users over a network; copyleft", false,
     kStandard, kDate},
    {"lgpl", "GNU LGPL, version not stated", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"lgpl-2.1", "GNU LGPL 2.1", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"lgpl-3.0", "GNU LGPL 3.0", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"gfdl", "GNU Free Documentation License", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"mpl-2.0", "Mozilla Public License 2.0", Y, C, C, "changed files stay under the licence", false,
     kStandard, kDate},
    {"epl-1.0", "Eclipse Public License 1.0", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"epl-2.0", "Eclipse Public License 2.0", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"eupl-1.1", "European Union Public Licence 1.1", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"eupl-1.2", "European Union Public Licence 1.2", Y, C, C, kCopyleft, false, kStandard, kDate},
    {"osl-3.0", "Open Software License 3.0", C, C, C,
     "the source is also owed to users over a network; copyleft", false, kStandard, kDate},
    {"cdla-sharing-1.0", "CDLA Sharing 1.0", Y, C, C, "data is passed on under the same agreement", false,
     kStandard, kDate},
    {"odbl", "Open Database License", Y, C, C, kShareAlike, false, kStandard, kDate},
    {"lppl-1.3c", "LaTeX Project Public License 1.3c", Y, Y, C, "changed versions are marked as such", false,
     kStandard, kDate},
    // Responsible-AI licences.
    {"openrail", "OpenRAIL", C, C, C, kRail, false, "https://www.licenses.ai", kDate},
    {"openrail++", "OpenRAIL++", C, C, C, kRail, false, "https://www.licenses.ai", kDate},
    {"bigscience-openrail-m", "BigScience OpenRAIL-M", C, C, C, kRail, false, "https://www.licenses.ai",
     kDate},
    {"bigscience-bloom-rail-1.0", "BigScience BLOOM RAIL 1.0", C, C, C, kRail, false,
     "https://huggingface.co/spaces/bigscience/license", kDate},
    {"creativeml-openrail-m", "CreativeML OpenRAIL-M", C, C, C, kRail, false,
     "https://huggingface.co/spaces/CompVis/stable-diffusion-license", kDate},
    {"bigcode-openrail-m", "BigCode OpenRAIL-M", C, C, C, kRail, true,
     "https://huggingface.co/spaces/bigcode/bigcode-model-license-agreement", kDate},
    // Publishers' own.
    {"llama", "LLaMA (first version)", N, N, C, kResearch, true,
     "https://github.com/facebookresearch/llama/tree/llama_v1", kDate},
    {"llama2", "Llama 2 Community License", C, C, C, kLlama2, true, "https://ai.meta.com/llama/license",
     kDate},
    {"llama3", "Llama 3 Community License", C, C, C,
     "acceptable use policy; a licence of its own from 700 million monthly users on; outputs must not "
     "improve "
     "other language models; show \"Built with Meta Llama 3\"",
     true, "https://llama.meta.com/llama3/license", kDate},
    {"llama3.1", "Llama 3.1 Community License", C, C, C, kLlama, true,
     "https://www.llama.com/llama3_1/license", kDate},
    {"llama3.2", "Llama 3.2 Community License", C, C, C,
     "acceptable use policy (the image models are not licensed to residents of the EU); a licence of its own "
     "from 700 million monthly users on; show \"Built with Llama\"",
     true, "https://www.llama.com/llama3_2/license", kDate},
    {"llama3.3", "Llama 3.3 Community License", C, C, C, kLlama, true,
     "https://www.llama.com/llama3_3/license", kDate},
    {"llama4", "Llama 4 Community License", C, C, C,
     "acceptable use policy (not licensed to residents of the EU); a licence of its own from 700 million "
     "monthly users on; show \"Built with Llama\"",
     true, "https://www.llama.com/llama4/license", kDate},
    {"gemma", "Gemma Terms of Use", C, C, C,
     "prohibited use policy, which is passed on with the model and its derivatives", true,
     "https://ai.google.dev/gemma/terms", kDate},
    {"health-ai-developer-foundations", "Health AI Developer Foundations terms", C, C, C,
     "use policy; clinical use needs the approvals that the law asks for; terms are passed on", true,
     "https://developers.google.com/health-ai-developer-foundations/terms", kDate},
    {"qwen", "Qwen License Agreement", C, C, C,
     "a licence of its own from 100 million monthly users on; keep the notice", false,
     "https://huggingface.co/Qwen/Qwen2.5-72B-Instruct/blob/main/LICENSE", kDate},
    {"tongyi-qianwen", "Tongyi Qianwen License Agreement", C, C, C,
     "a licence of its own from 100 million monthly users on; keep the notice", false,
     "https://github.com/QwenLM/Qwen, Tongyi Qianwen LICENSE AGREEMENT", kDate},
    {"qwen-research", "Qwen Research License Agreement", N, C, C, kResearch, false,
     "https://huggingface.co/Qwen/Qwen2.5-3B-Instruct/blob/main/LICENSE", kDate},
    {"tongyi-qianwen-research", "Tongyi Qianwen Research License", N, C, C, kResearch, false,
     "https://github.com/QwenLM/Qwen, Tongyi Qianwen RESEARCH LICENSE AGREEMENT", kDate},
    {"qwen-community-1.0", "Qwen Community License 1.0", U, U, U, "", false, kNameOnly, kDate},
    {"deepseek", "DeepSeek Model License", C, C, C, kRail, false,
     "https://github.com/deepseek-ai/DeepSeek-V3/blob/main/LICENSE-MODEL", kDate},
    {"mistral-research", "Mistral AI Research License", N, C, C, kResearch, true,
     "https://mistral.ai/licenses/MRL-0.1.md", kDate},
    {"mnpl", "Mistral AI Non-Production License", N, C, C, "no production use", true,
     "https://mistral.ai/licenses/MNPL-0.1.md", kDate},
    {"falcon-llm-license", "Falcon LLM License", C, C, C,
     "acceptable use policy, which is passed on; show the attribution", false,
     "https://falconllm.tii.ae/falcon-terms-and-conditions.html", kDate},
    {"falcon-180b", "Falcon 180B TII License", C, C, C,
     "hosting it as a shared service for others needs a licence of its own; acceptable use policy", true,
     "https://huggingface.co/tiiuae/falcon-180B/blob/main/LICENSE.txt", kDate},
    {"jamba-open-model-license", "Jamba Open Model License", C, C, C,
     "free for organisations below 50 million USD of yearly revenue; a licence of its own above", false,
     "https://www.ai21.com/licenses/jamba-open-model-license", kDate},
    {"nvidia-open-model-license", "NVIDIA Open Model License", C, C, Y,
     "the notice is kept; the licence ends when safety guardrails are bypassed without replacement", false,
     "https://www.nvidia.com/en-us/agreements/enterprise-software/nvidia-open-model-license", kDate},
    {"nvidia-nemotron-open-model-license", "NVIDIA Nemotron Open Model License", U, U, U, "", false,
     kNameOnly, kDate},
    {"grok2-community", "Grok 2 Community License", C, C, C,
     "below 1 million USD of yearly revenue; must not train other models", false,
     "https://huggingface.co/xai-org/grok-2/blob/main/LICENSE", kDate},
    {"stabilityai-ai-community", "Stability AI Community License", C, C, C,
     "free below 1 million USD of yearly revenue; a licence of its own above", true,
     "https://stability.ai/community-license-agreement", kDate},
    {"stabilityai-nc-research-community", "Stability AI Non-Commercial Research License", N, C, C, kResearch,
     true, "https://huggingface.co/stabilityai/sdxl-turbo/blob/main/LICENSE.md", kDate},
    {"yi-license", "Yi Series Models License", C, C, C, "commercial use needed registration", false,
     "https://github.com/01-ai/Yi/blob/main/MODEL_LICENSE_AGREEMENT.txt", kDate},
    {"exaone", "EXAONE AI Model License (non-commercial)", N, C, C, kResearch, false,
     "https://huggingface.co/LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct/blob/main/LICENSE", kDate},
    {"lfm1.0", "LFM Open License 1.0", C, C, C,
     "free below 10 million USD of yearly revenue; a licence of its own above", false,
     "https://www.liquid.ai/lfm-license", kDate},
    {"tencent-hunyuan-community", "Tencent Hunyuan Community License", C, C, C,
     "not licensed in the EU, the UK and South Korea; a licence of its own from 100 million monthly users on",
     false, "https://huggingface.co/tencent/Hunyuan-A13B-Instruct/blob/main/LICENSE", kDate},
    {"databricks-open-model-license", "Databricks Open Model License", C, C, C,
     "acceptable use policy; a licence of its own from 700 million monthly users on; must not improve other "
     "models",
     true, "https://www.databricks.com/legal/open-model-license", kDate},
    {"apple-amlr", "Apple Machine Learning Research Model License", N, C, C, kResearch, false,
     "https://huggingface.co/apple, LICENSE of the models under it", kDate},
    {"apple-ascl", "Apple Sample Code License", Y, Y, Y, "keep the notice when passing it on unchanged",
     false, "https://huggingface.co/apple, LICENSE of the models under it", kDate},
    {"intel-research", "Intel Research Use License", N, C, C, kResearch, false,
     "https://huggingface.co/Intel, LICENSE of the models under it", kDate},
    {"h-research", "H Company research licence", N, C, C, kResearch, false,
     "https://huggingface.co/Hcompany, LICENSE of the models under it", kDate},
    {"fair-noncommercial-research-license", "FAIR Noncommercial Research License", N, C, C, kResearch, true,
     "https://huggingface.co/facebook, LICENSE of the models under it", kDate},
    {"deepfloyd-if-license", "DeepFloyd IF License", N, C, C, kResearch, true,
     "https://huggingface.co/DeepFloyd/IF-I-XL-v1.0/blob/main/LICENSE", kDate},
    {"c-uda", "Computational Use of Data Agreement", C, C, C, "for computational use only", false, kStandard,
     kDate},
    {"lgpl-lr", "LGPL for Linguistic Resources", Y, C, C, kCopyleft, false, kStandard, kDate},
};

}  // namespace

std::span<const LicenseFacts> all_licenses() {
  return kLicenses;
}

}  // namespace plimsoll::facts
