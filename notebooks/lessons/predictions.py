"""The predictions of the main line: here, so that no cell shows an answer above its question."""

from __future__ import annotations

from typing import NamedTuple

import gemmlab

from . import facts


class Question(NamedTuple):
    """A question with its right choice; `choices` says of each why it is right, or tempting."""

    question: str
    right: str
    choices: dict[str, str]


QUESTIONS = {
    1: Question(
        "In kernel 1, neighbours in a warp have neighbouring m. Swap 0 and 1 in the lines of m and "
        "n, and they have neighbouring n. The product stays the same. The H200 then computes "
        "it ...",
        "at a thirteenth of the rate",
        {
            "as fast": "The arithmetic is the same, and so is the number of loads. But not how "
            "many lines of memory they touch.",
            "at half the rate": "One of the two matrices is now loaded badly, that is true. But "
            "its loads take 32 times as long, not twice.",
            "at a thirteenth of the rate": "{{rate swapped}} instead of {{rate 1}}: each lane's "
            "element of B is then in another line of the cache.",
        },
    ),
    2: Question(
        "Every float is now fetched 32 times less often. On the H200 this kernel is ...",
        "about 1.4 times as fast",
        {
            "about 30 times as fast": "That would be so if fetching were all that the kernel "
            "waits for.",
            "about 8 times as fast": "Eight is the factor that the loads cost. But they are still "
            "there.",
            "about 1.4 times as fast": "The tiles come from DRAM and L2 less often. But that path "
            "was not full.",
            "no faster": "Close: the same two loads per multiply-add are left. The compiler "
            "merges some of them.",
        },
    ),
    3: Question(
        "Two loads per multiply-add become 1 + 1/8. And where the code has one load of B per "
        "multiply-add, the compiler merges four. The H200 is ...",
        "more than twice as fast",
        {
            "about as fast": "The loads of A nearly vanish, and they were the more expensive half.",
            "more than twice as fast": "{{times 2 -> 3}} times: the turns of local memory fall "
            "from {{turns 2}} to {{turns 3}} per multiply-add.",
            "eight times as fast": "The loads of A fall to an eighth. Those of B stay.",
        },
    ),
    6: Question(
        "A quarter of a load per multiply-add is exactly what local memory has room for. The H200 "
        "reaches ... of its peak",
        "about half",
        {
            "nearly all": "The loads fit beside the arithmetic. But each of them takes a slot of a "
            "scheduler, in which no multiply-add starts.",
            "about three quarters": "The slots allow {{roof 6}}. But something else is lost, too.",
            "about half": "{{share 6}}. Local memory has room again. What takes the other half is "
            "the question of the rest of this story.",
            "a third, as before": "The loads fell to a quarter, and they were the limit.",
        },
    ),
    15: Question(
        "Kernel 6 left {{slots 6 others}} of the slots to other instructions, and "
        "{{slots 6 empty}} empty. Kernel 15 has half as many other instructions. What becomes of "
        "their slots?",
        "multiply-adds take them",
        {
            "multiply-adds take them": "All of them: {{slots 15 adds}} of the slots are "
            "multiply-adds now. The empty ones have hardly changed.",
            "they stay empty": "It would be so if no warp were ready. But most of the time several "
            "are ready, and only one may start.",
            "half and half": "Waiting hardly changes, because the loads that are left wait for the "
            "same things.",
        },
    ),
    16: Question(
        "In kernel 15, its loop unrolled, move those stores from before the multiply-adds to "
        "behind them, and change nothing else. The H200 ...",
        "gains less than a tenth",
        {
            "is as fast as before": "A clever compiler might have moved them. This one does not.",
            "gains less than a tenth": "{{gain beyond: kernel 15, UNROLL=16 -> beyond: kernel 15, "
            "UNROLL=16, through registers}}. It is the same work in another order, so the warps "
            "did wait there.",
            "gains a third": "That would be all of the empty slots, and they have more than one "
            "reason.",
            "computes a wrong product": "The stores go to the other buffer, which nobody reads "
            "before the barrier.",
        },
    ),
    17: Question(
        "Averaged over both rounds, what share of the multiprocessors is idle?",
        "about a quarter",
        {
            "none": "There is work for all in the first round. In the second there are 68 tiles "
            "for 132 multiprocessors.",
            "about a quarter": "Two rounds have room for 264 tiles, and there are 200.",
            "about a half": "That is the second round. In the first, all are busy.",
        },
    ),
    18: Question(
        "Compared with the product of cuBLAS in float32, at K = 4096, the error of kernel 18 "
        "is ...",
        "about a third",
        {
            "about 1,000 times as large": "That would be plain TF32, one number for each float.",
            "about 3 times as large": "Two numbers hold 23 of a float's 24 bits. And most of the "
            "error comes from adding, not from the factors.",
            "about the same": "The factors lose a little. The sum gains more.",
            "about a third": "{{error 18}} against {{error cuBLAS}}, relative to the whole "
            "product. It rounds once per 8 terms, a float32 sum at every term.",
        },
    ),
    19: Question(
        "Kernel 19 is much faster than kernel 18. What brings most of that?",
        "the larger instruction, and splitting once for all",
        {
            "going on while the instruction runs": "It is the idea of kernel 16 again. But there "
            "are two warpgroups, and while one waits the other multiplies.",
            "the larger instruction, and splitting once for all": "The instruction alone has a "
            "roof 1.53 times as high, and only three eighths as many splits are left. Let each "
            "warpgroup wait as soon as it has issued the instruction, and only "
            "{{gain warpgroups: 19 waiting -> warpgroups: 19}} is lost.",
        },
    ),
}  # fmt: skip


def predict(kernel: int) -> gemmlab.Prediction:
    """Return the question about a rung of the main line. Raises KeyError for another kernel."""
    question, right, choices = QUESTIONS[kernel]
    reasons = {choice: facts.fill(reason) for choice, reason in choices.items()}
    because = reasons.pop(right)
    return gemmlab.Prediction(facts.fill(question), list(choices), right, because, reasons)
