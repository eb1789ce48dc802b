// signed-request.ts: one signed request without effect, for `doctor`: a batch without batchId, which the
// specification refuses with 400 (ingestion-api.md 4.2, rule 5). It carries no telemetry.

import type { Clock, EpochMs } from '../std/clock.ts'
import { Secret } from '../std/secret.ts'
import type { Outcome } from '../domain/outcome.ts'
import { createCheckSubmitter } from './check-submitter.ts'
import { createCredentials } from './credentials/credentials.ts'
import type { ProviderOptions } from './delivery-options.ts'

type Deps = { clock: Clock; env: NodeJS.ProcessEnv }

export type SigningKeys = {
  accessKeyId: string
  secret: Secret
  sessionToken: Secret | null
  expiresAt: EpochMs | null
}

const answerMs = 10_000
const body = Buffer.from('{"data":[]}')

/** Finds the keys of a provider as delivery does. Rejects with CREDENTIALS_MISSING. */
export async function findSigningKeys(
  { clock, env }: Deps,
  { credentials, proxy }: ProviderOptions,
): Promise<SigningKeys> {
  const found = await createCredentials({ clock, env, proxy }, credentials).current()
  return {
    accessKeyId: found.accessKeyId,
    secret: new Secret(found.secretAccessKey),
    sessionToken: found.sessionToken === undefined ? null : new Secret(found.sessionToken),
    expiresAt: found.expiration?.getTime() ?? null,
  }
}

/** Rejects as transportOptions() does; every answer, and none, is an Outcome. */
export async function sendSignedRequest(
  { clock, env, stop }: Deps & { stop: AbortSignal },
  provider: ProviderOptions,
  { accessKeyId, secret, sessionToken }: SigningKeys,
): Promise<Outcome> {
  const keys = {
    accessKeyId,
    secretAccessKey: secret.reveal(),
    ...(sessionToken === null ? {} : { sessionToken: sessionToken.reveal() }),
  }
  const { submitter, sign } = await createCheckSubmitter(provider, keys, env)
  const now = clock.now()
  try {
    const { outcome } = await submitter.submit({
      operation: 'batch',
      body,
      encoding: null,
      payloadIds: () => [],
      sign,
      signingAt: now,
      startedAt: now,
      timeoutMs: answerMs,
      stop,
    })
    return outcome
  } finally {
    await submitter.close()
  }
}
