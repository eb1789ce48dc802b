// step-budget.ts: bounds the time of an evaluation. A step is a visit of an element of a list, or the work on
// some characters of a text. An evaluation that needs more than `stepsMax` ends with a StepLimit, whatever is
// around the part that reached it. Who reads the record catches it, and the message becomes a dead letter
// (EXPRESSION_LIMIT).

export const stepsMax = 10_000

/** Characters of a text that count as one step. */
const charactersPerStep = 16

export class StepLimit extends Error {}

export const limitText = `the expression needs more than ${stepsMax} steps`

/** One object, as its stack takes time and a message can reach the limit in each of its records. */
const limit = new StepLimit(limitText)

/** The steps of one expression. */
export class StepBudget {
  #left = stepsMax

  begin(): void {
    this.#left = stepsMax
  }

  /** Throws StepLimit. */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw limit
  }
}

export function stepsOfText(length: number): number {
  return 1 + Math.ceil(length / charactersPerStep)
}

/** What `run` gives; undefined where an expression reaches its limit. */
export function withinLimit<Result>(run: () => Result): Result | undefined {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof StepLimit)) throw error
    return undefined
  }
}
