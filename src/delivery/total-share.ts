// total-share.ts: divides the places of `max_in_flight_total` among the providers. Each submission takes one.
//
// A submission cannot be interrupted, so one place is kept free for each provider that uses none: a service
// that hangs takes all others at most. Who waited longest comes first.
//
// Bound: a provider waits with `max_in_flight` submissions at most (provider-pipeline.ts).

/** The places of one provider. */
export type ProviderShare = {
  /** True when a place is taken, false where `signal` aborts first. */
  enter(signal: AbortSignal): Promise<boolean>
  /** Gives the place back. */
  leave(): void
  /** How many wait now. */
  waiting(): number
}

type Share = { used: number; waiting: number }
type Waiter = { share: Share; enter: () => void }

export class TotalShare {
  readonly #shares: Share[] = []
  readonly #waiters = new Set<Waiter>()
  #places: number

  constructor(places: number) {
    this.#places = places
  }

  /** For the next provider. */
  open(): ProviderShare {
    const share: Share = { used: 0, waiting: 0 }
    this.#shares.push(share)
    return {
      enter: (signal) => this.#enter(share, signal),
      leave: () => {
        share.used -= 1
        this.#admit()
      },
      waiting: () => share.waiting,
    }
  }

  /** Another number of places, at least one for each provider. With fewer, those in use end first. */
  resize(places: number): void {
    this.#places = places
    this.#admit()
  }

  #enter(share: Share, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const leave = (isIn: boolean) => {
        signal.removeEventListener('abort', onAbort)
        this.#waiters.delete(waiter)
        share.waiting -= 1
        resolve(isIn)
      }
      const onAbort = () => leave(false)
      const waiter = { share, enter: () => leave(true) }
      share.waiting += 1
      this.#waiters.add(waiter)
      signal.addEventListener('abort', onAbort, { once: true })
      this.#admit()
    })
  }

  /** Gives free places to those that wait. */
  #admit(): void {
    for (const { share, enter } of this.#waiters) {
      if (!this.#mayTake(share)) continue
      share.used += 1
      enter()
    }
  }

  #mayTake(share: Share): boolean {
    let free = this.#places
    for (const other of this.#shares) free -= other === share ? other.used : Math.max(1, other.used)
    return free > 0
  }
}
