// keyring.ts: the credentials of one provider that are in force.
//
// After a 401 or 403 the credentials are asked for again, once until the next success: whoever rotates keys has
// then nothing to restart, and an account that is really refused costs one more request, not one per batch.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import { messageOf } from '../../std/gateway-error.ts'
import type { Emit } from '../../domain/event.ts'
import { createCredentials } from './credentials.ts'
import type { Credentials } from './credentials.ts'
import type { ProviderOptions } from '../delivery-options.ts'

export type Keyring = {
  /** Null when there are credentials, else why not. `again` asks the source, whatever is remembered. */
  ready(options: { again: boolean }): Promise<string | null>
  /** Those that the next request is signed with; null before ready(). */
  readonly credentials: Credentials | null
  /** Grows with every renewal; take it before a submission and give it to renew(). */
  readonly generation: number
  /** Whether the request should be signed and sent once more at once. */
  renew(generation: number): Promise<boolean>
  /** The service accepted a signature. */
  proved(): void
  readonly accessKeyId: string | null
  /** Calls `changed` when the files of the credentials gave others, until it is cancelled. */
  watch(changed: () => void): CancelTimer
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
  let held: Credentials | null = null
  let generation = 0
  let spent = false
  let missing = false
  let renewing: Promise<void> | null = null

  return {
    ready,
    get credentials() {
      return held
    },
    get generation() {
      return generation
    },
    renew,
    proved() {
      spent = false
    },
    get accessKeyId() {
      return held?.accessKeyId ?? null
    },
    watch: (changed) =>
      source.watch(() => {
        // What the service refused so far says nothing about these.
        spent = false
        changed()
      }),
  }

  async function ready({ again }: { again: boolean }): Promise<string | null> {
    try {
      take(again ? await source.reread() : await source.current())
      return null
    } catch (error) {
      missing = true
      return messageOf(error)
    }
  }

  function take(found: Credentials): void {
    if (found === held && !missing) return
    if (missing || found.accessKeyId !== held?.accessKeyId)
      emit({ kind: 'credentials_found', provider, accessKeyId: found.accessKeyId })
    held = found
    missing = false
  }

  function refreshFailed(failure: { why: string; expiresAt: number | null } | null): void {
    if (failure === null) emit({ kind: 'credentials_refreshed', provider })
    else emit({ kind: 'credentials_stale', provider, ...failure })
  }

  async function renew(signedAt: number): Promise<boolean> {
    if (renewing === null && signedAt === generation) {
      if (spent) return false
      spent = true
      renewing = ready({ again: true }).then(() => {
        generation += 1
        renewing = null
      })
    }
    await renewing
    return true
  }
}
