// check-submitter.ts: sends the requests of the commands that check a provider. In the daemon only the sender
// thread has the HTTP client and the signer, 7 MB: so they are loaded when a check needs them.

import type { Clock } from '../std/clock.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { Credentials } from './credentials/access-keys.ts'
import type { ProviderOptions } from './delivery-options.ts'
import { transportOptions } from './transport/transport-options.ts'

export type CheckSubmitter = {
  /** To the batch operation. Every answer, and none, is an Outcome. */
  send(body: Buffer, encoding: 'gzip' | null): Promise<Outcome>
  close(): Promise<void>
}

export type CheckDeps = { clock: Clock; env: NodeJS.ProcessEnv; stop: AbortSignal }

const answerMs = 10_000

/** Rejects as transportOptions() throws. */
export async function createCheckSubmitter(
  { clock, env, stop }: CheckDeps,
  provider: ProviderOptions,
  credentials: Credentials,
): Promise<CheckSubmitter> {
  const { createSubmitter } = await import('./transport/submit.ts')
  const { createSigner } = await import('./transport/sign.ts')
  const submitter = createSubmitter(transportOptions(provider, env))
  const sign = createSigner(credentials)
  return {
    async send(body, encoding) {
      const now = clock.now()
      const times = { signingAt: now, startedAt: now, timeoutMs: answerMs }
      const request = { operation: 'batch' as const, body, encoding, payloadIds: () => [], sign, stop }
      return (await submitter.submit({ ...request, ...times })).outcome
    },
    close: () => submitter.close(),
  }
}
