// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/requests.h"

#include <gtest/gtest.h>

#include <numeric>

namespace plimsoll::schedule {

Options small_pool(std::int64_t num_blocks) {
  Options options;
  options.num_blocks = Blocks(num_blocks);
  options.block_size = 4;
  options.max_num_seqs = 8;
  options.max_num_batched_tokens = 16;
  return options;
}

std::vector<TokenId> counting(TokenId first, int count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

Request asked(SequenceId id, std::vector<TokenId> prompt, std::int64_t final_tokens) {
  Request request;
  request.id = id;
  request.prompt = std::move(prompt);
  request.final_tokens = Tokens(final_tokens);
  return request;
}

void add(Scheduler& scheduler, SequenceId id, std::vector<TokenId> prompt, std::int64_t final_tokens,
         int priority, const std::string& salt) {
  Request request = asked(id, std::move(prompt), final_tokens);
  request.priority = priority;
  request.cache_salt = salt;
  const Status status = scheduler.add(std::move(request));
  ASSERT_TRUE(status) << status.error().describe();
}

Step run_step(Scheduler& scheduler) {
  const Step step = scheduler.next();
  scheduler.complete(step);
  for (const Work& work : step.work)
    if (work.is_last_chunk) scheduler.append(work.sequence, 900);
  return step;
}

std::vector<SequenceId> ids(const Step& step) {
  std::vector<SequenceId> result;
  for (const Work& work : step.work) result.push_back(work.sequence);
  return result;
}

}  // namespace plimsoll::schedule
