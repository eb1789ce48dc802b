// keyring.ts: the credentials of one provider that are in force.
//
// After a 401 or 403 the credentials are read again, once until the next success: rotated keys need no
// restart, and an account that is really refused costs one more request, not one per batch.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { Emit } from '../../domain/event.ts'
import type { State } from '../../domain/condition-state.ts'
import { createCredentials } from './credentials.ts'
import type { Credentials } from './access-keys.ts'
import type { ProviderOptions } from '../delivery-options.ts'

export type Keyring = {
  /** Null when there are credentials, else why not. `again` reads the source, whatever is cached. */
  ready(options: { again: boolean }): Promise<string | null>
  /** For the next request; null before ready(). */
  credentials(): Credentials | null
  /** Grows with every renewal; read it before a submission and pass it to the next two. */
  generation(): number
  /** Whether renew() may give other credentials than those of a refused request. */
  mayRenew(generation: number): boolean
  renew(generation: number): Promise<void>
  /** Other keys of the config, or another login at the proxy. */
  use(options: Pick<ProviderOptions, 'credentials' | 'proxy'>): Promise<void>
  /** The service accepted a signature. */
  accepted(): void
  accessKeyId(): string | null
  /**
   * Calls `changed` when the files of the credentials contain new ones, until it is cancelled. A file that is
   * wrong is a state at once, and not only when the first device has sent.
   */
  watch(changed: () => void): CancelTimer
  states(): Iterable<State>
}

type Deps = {
  clock: Clock
  env: NodeJS.ProcessEnv
  emit: Emit
  /** Service clock minus ours; null while unknown. */
  offsetMs: () => number | null
}

export function createKeyring(deps: Deps, options: ProviderOptions): Keyring {
  const { emit } = deps
  const { name: provider, proxy } = options
  const source = createCredentials({ ...deps, proxy, refreshFailed }, options.credentials)
  let current: Credentials | null = null
  let generation = 0
  /** The credentials were read again since the last success. */
  let spent = false
  /** Why there are none. */
  let missing: string | null = null
  let stale: { why: string; expiresAt: number | null } | null = null
  let renewing: Promise<void> | null = null

  return {
    ready,
    credentials() {
      return current
    },
    generation() {
      return generation
    },
    mayRenew: (signedAt) => !spent || renewing !== null || signedAt !== generation,
    renew,
    async use(next) {
      spent = false
      await found(source.renew(next.credentials, next.proxy))
      generation += 1
    },
    accepted() {
      spent = false
    },
    accessKeyId() {
      return current?.accessKeyId ?? null
    },
    states,
    watch(changed) {
      // Neither call rejects.
      if (options.credentials.source === 'file') void ready({ again: false })
      return source.watch(() => {
        spent = false
        // That there are keys now shows in the states.
        void ready({ again: false })
        changed()
      })
    },
  }

  function* states(): Generator<State> {
    if (missing !== null) yield { code: 'CREDENTIALS_MISSING', provider, why: missing }
    if (stale !== null) yield { code: 'CREDENTIALS_STALE', provider, ...stale }
  }

  function ready({ again }: { again: boolean }): Promise<string | null> {
    return found(again ? source.reread() : source.current())
  }

  async function found(looking: Promise<Credentials>): Promise<string | null> {
    try {
      take(await looking)
      return null
    } catch (error) {
      missing = messageOf(error)
      return missing
    }
  }

  function take(found: Credentials): void {
    if (found === current && missing === null) return
    if (missing !== null || found.accessKeyId !== current?.accessKeyId)
      emit({ kind: 'credentials_found', provider, accessKeyId: found.accessKeyId })
    current = found
    missing = null
  }

  function refreshFailed(failure: { why: string; expiresAt: number | null } | null): void {
    stale = failure
  }

  async function renew(signedAt: number): Promise<void> {
    if (renewing === null && signedAt === generation) {
      spent = true
      renewing = ready({ again: true }).then(() => {
        generation += 1
        renewing = null
      })
    }
    await renewing
  }
}
