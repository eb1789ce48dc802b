// signed-request.ts: one signed request without effect, for `doctor`: a batch without batchId, which the
// specification refuses with 400 (ingestion-api.md 4.2, rule 5). It carries no telemetry.

import type { EpochMs } from '../std/clock.ts'
import { Secret } from '../std/secret.ts'
import type { Outcome } from '../domain/outcome.ts'
import { createCheckSubmitter, type CheckDeps } from './check-submitter.ts'
import { createCredentials } from './credentials/credentials.ts'
import type { ProviderOptions } from './delivery-options.ts'

export type SigningKeys = {
  accessKeyId: string
  secret: Secret
  sessionToken: Secret | null
  expiresAt: EpochMs | null
}

const body = Buffer.from('{"data":[]}')

/** Finds the keys of a provider as delivery does. Rejects with CREDENTIALS_MISSING. */
export async function findSigningKeys(
  { clock, env }: Pick<CheckDeps, 'clock' | 'env'>,
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
  deps: CheckDeps,
  provider: ProviderOptions,
  { accessKeyId, secret, sessionToken }: SigningKeys,
): Promise<Outcome> {
  const keys = {
    accessKeyId,
    secretAccessKey: secret.reveal(),
    ...(sessionToken === null ? {} : { sessionToken: sessionToken.reveal() }),
  }
  const submitter = await createCheckSubmitter(deps, provider, keys)
  try {
    return await submitter.send(body, null)
  } finally {
    await submitter.close()
  }
}
