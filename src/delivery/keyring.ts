// keyring.ts: the signer of one provider, kept in step with its credentials.
//
// After a 401 or 403 the credentials are asked for again, once until the next success: whoever rotates keys has
// then nothing to restart, and an account that is really refused costs one more request, not one per batch.

import { messageOf } from '../std/fault.ts'
import type { Emit } from '../domain/event.ts'
import type { ProviderName } from '../domain/ids.ts'
import type { Credentials, CredentialsSource } from './credentials.ts'
import { createSigner } from './sign.ts'
import type { Sign } from './sign.ts'

export type Keyring = {
  /** Null when sign() can be called, else why not. `again` asks the source, whatever is remembered. */
  ready(options: { again: boolean }): Promise<string | null>
  sign: Sign
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
  let held: { credentials: Credentials; sign: Sign } | null = null
  let generation = 0
  let spent = false
  let renewing: Promise<void> | null = null

  return {
    ready,
    sign: (request, signingAt) =>
      held === null ? Promise.reject(new Error('sign() before ready()')) : held.sign(request, signingAt),
    get generation() {
      return generation
    },
    renew,
    proved() {
      spent = false
    },
    get accessKeyId() {
      return held?.credentials.accessKeyId ?? null
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
    if (found === held?.credentials) return
    if (found.accessKeyId !== held?.credentials.accessKeyId)
      emit({ kind: 'credentials_found', provider, accessKeyId: found.accessKeyId })
    held = { credentials: found, sign: createSigner(found) }
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
