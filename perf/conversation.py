# SPDX-License-Identifier: Apache-2.0
"""A conversation of eight turns, all of it sent again with each turn, with and without reuse of what was computed before.

usage: conversation.py PROGRAM MODEL [--rounds 3]

Prints per turn: prompt tokens, tokens computed (prompt less cached, as the server's usage says), and the time to the
first token, median of the rounds, which take turns."""
import argparse
import statistics

from own_server import OwnServer

TURNS = 8
SYSTEM = ("You help engineers who run language models on their own machines. Answer with figures where there are some, say where "
          "they come from, and say what you do not know. Keep to the question, and prefer short sentences over long ones. ") * 3
QUESTION = "Turn {}: which part of the memory bill should I look at next, and what would it cost me in tokens per second?"


def talk(server):
    """[(prompt tokens, computed tokens, seconds to the first token)] of each turn."""
    messages, turns = [{"role": "system", "content": SYSTEM}], []
    for turn in range(1, TURNS + 1):
        messages.append({"role": "user", "content": QUESTION.format(turn)})
        first, usage, text = None, None, ""
        for at, event in server.stream("/v1/chat/completions", {
                "messages": messages, "max_tokens": 150, "temperature": 0, "ignore_eos": True, "stream_options": {"include_usage": True}}):
            usage = event.get("usage") or usage
            piece = event["choices"][0]["delta"].get("content") if event["choices"] else None
            if piece:
                first = first or at
                text += piece
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        turns.append((usage["prompt_tokens"], usage["prompt_tokens"] - cached, first))
        messages.append({"role": "assistant", "content": text})
    return turns


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    runs = {"--no-enable-prefix-caching": [], "--enable-prefix-caching": []}
    for _ in range(arguments.rounds):
        for flag, results in runs.items():
            with OwnServer(arguments.program, arguments.model, flag, "--max-model-len", "2048") as server:
                results.append(talk(server))
    print("| turn | prompt tokens | computed without | computed with | TTFT without, ms | TTFT with, ms | ratio |\n|---|---|---|---|---|---|---|")
    without, reused = runs.values()
    for turn in range(TURNS):
        ratios = [a[turn][2] / b[turn][2] for a, b in zip(without, reused, strict=True)]
        milliseconds = [1000 * statistics.median(run[turn][2] for run in results) for results in (without, reused)]
        print(f"| {turn + 1} | {reused[0][turn][0]:,} | {without[0][turn][1]:,} | {reused[0][turn][1]:,} | {milliseconds[0]:,.0f} | "
              f"{milliseconds[1]:,.0f} | {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}) |")


if __name__ == "__main__":
    main()
