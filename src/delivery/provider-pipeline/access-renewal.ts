// access-renewal.ts: puts renewed certificates, keys of the config and the login at the proxy of a provider
// in force. Requests that run end with the former ones.

import { isDeepStrictEqual } from 'node:util'
import type { Keyring } from '../credentials/keyring.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { transportOptions } from '../transport/transport-options.ts'
import type { Transport } from '../transport/transport.ts'

type Deps = {
  env: NodeJS.ProcessEnv
  transport: Transport
  keyring: Keyring
  /** What waits because of the former ones can be tried. */
  accessRenewed: () => void
}

/** The result ignores other options. */
export function createAccessRenewal(
  { env, transport, keyring, accessRenewed }: Deps,
  options: ProviderOptions,
): (next: ProviderOptions) => void {
  let present = accessOf(options)
  return (next) => {
    const access = accessOf(next)
    if (isDeepStrictEqual(access, present)) return
    present = access
    transport.renew(transportOptions({ ...options, ...access }, env))
    // It never rejects. A reload does not wait for a token service that does not answer.
    void keyring.use(access).then(accessRenewed)
  }
}

function accessOf({ ca, clientCertificate, proxy, credentials }: ProviderOptions) {
  return { ca, clientCertificate, proxy, credentials }
}
