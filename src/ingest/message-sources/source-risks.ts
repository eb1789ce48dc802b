// source-risks.ts: what the server of a message source would lose, strand or delay. Each risk is a condition
// while it is found of anything: of a connection, a partition, a queue. All of them are its causes, and the
// first one is in words.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import type { SourceRisk, State, StateSource } from '../../domain/condition-state.ts'

/** `act`: null where the risk says it. `clientId`: of the connection that saw it. */
export type RiskFinding = { clientId: string; detail: string; act?: string | null }

/** How long a risk that happened once stays open after its last event. */
const shownForMs = 86_400_000

export class SourceRisks implements StateSource {
  readonly #clock: Pick<Clock, 'after'>
  readonly #messageSource: string
  /** By risk, and by what it is about. */
  readonly #found = new Map<SourceRisk, Map<string, RiskFinding>>()
  readonly #timers = new Map<SourceRisk, CancelTimer>()

  constructor({ clock }: { clock: Pick<Clock, 'after'> }, messageSource: string) {
    this.#clock = clock
    this.#messageSource = messageSource
  }

  has(risk: SourceRisk, about: string): boolean {
    return this.#found.get(risk)?.has(about) === true
  }

  /** Null: it is not found of `about`, or not any more. */
  set(risk: SourceRisk, about: string, finding: RiskFinding | null): void {
    const found = this.#found.get(risk) ?? new Map<string, RiskFinding>()
    if (finding === null) found.delete(about)
    else found.set(about, finding)
    if (found.size === 0) this.#found.delete(risk)
    else this.#found.set(risk, found)
  }

  /** These, by what each is about, and no others of the risk. */
  setAll(risk: SourceRisk, findings: ReadonlyMap<string, RiskFinding>): void {
    for (const about of this.#found.get(risk)?.keys() ?? [])
      if (!findings.has(about)) this.set(risk, about, null)
    for (const [about, finding] of findings) this.set(risk, about, finding)
  }

  /** Over when it did not happen again for this time. */
  happened(risk: SourceRisk, about: string, finding: RiskFinding, forMs = shownForMs): void {
    this.set(risk, about, finding)
    this.#timers.get(risk)?.()
    this.#timers.set(
      risk,
      this.#clock.after(forMs, () => void this.#found.delete(risk)),
    )
  }

  close(): void {
    for (const cancel of this.#timers.values()) cancel()
  }

  *states(): Generator<State> {
    for (const [risk, found] of this.#found) {
      const [first] = found.values()
      if (first === undefined) continue
      const about = [...found.keys()]
      const messageSource = this.#messageSource
      yield { code: 'MESSAGE_SOURCE_AT_RISK', messageSource, risk, about, act: null, ...first }
    }
  }
}
