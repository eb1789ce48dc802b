// check-submitter.ts: what the commands that check a provider send requests with. In the daemon only the
// sender thread has the HTTP client and the signer, 7 MB: so they are loaded when a check needs them.

import type { Credentials } from './credentials/access-keys.ts'
import type { ProviderOptions } from './delivery-options.ts'
import type { Sign } from './transport/sign.ts'
import type { Submitter } from './transport/submit.ts'
import { transportOptions } from './transport/transport-options.ts'

export type CheckSubmitter = { submitter: Submitter; sign: Sign }

/** Rejects as transportOptions() throws. */
export async function createCheckSubmitter(
  provider: ProviderOptions,
  credentials: Credentials,
  env: NodeJS.ProcessEnv,
): Promise<CheckSubmitter> {
  const { createSubmitter } = await import('./transport/submit.ts')
  const { createSigner } = await import('./transport/sign.ts')
  return { submitter: createSubmitter(transportOptions(provider, env)), sign: createSigner(credentials) }
}
