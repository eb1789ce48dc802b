// keyring.ts: the credentials of one provider that are in force.
//
// After a 401 or 403 the credentials are asked for again, once until the next success: whoever rotates keys has
// then nothing to restart, and an account that is really refused costs one more request, not one per batch.

import { messageOf } from '../std/fault.ts'
import type { Emit } from '../domain/event.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { Credentials, CredentialsSource } from './credentials.ts'

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
}

type Deps = { credentials: CredentialsSource; emit: Emit }

export function createKeyring(
  { credentials, emit }: Deps,
  { provider }: { provider: ProviderName },
): Keyring {
  let held: Credentials | null = null
  let generation = 0
  let spent = false
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
  }

  async function ready({ again }: { again: boolean }): Promise<string | null> {
    try {
      take(again ? await credentials.reread() : await credentials.current())
      return null
    } catch (error) {
      return messageOf(error)
    }
  }

  function take(found: Credentials): void {
    if (found === held) return
    if (found.accessKeyId !== held?.accessKeyId)
      emit({ kind: 'credentials_found', provider, accessKeyId: found.accessKeyId })
    held = found
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
