// options-renewal.ts: puts changed options of a provider in force while it sends, with renewed certificates,
// keys of the config and the login at the proxy.
//
// The parts of a pipeline share one object of options and read it at each decision; here it is changed.
//
//   a request that runs    ends with the former options, its timeout too
//   a wait that began      ends as it was set: a shorter back-off is used for the next one
//   a sealed batch         keeps its bytes, its batchId and its size
//
// The provider and its service stay: another name, base_url, provider_key, proxy or mode needs a restart.

import { isDeepStrictEqual } from 'node:util'
import type { Keyring } from '../credentials/keyring.ts'
import type { ProviderOptions } from '../delivery-options.ts'
import { transportOptions } from '../transport/transport-options.ts'
import type { Transport } from '../transport/transport.ts'

type Deps = {
  env: NodeJS.ProcessEnv
  transport: Transport
  keyring: Keyring
  /** What waits because of the former access can be tried. */
  accessRenewed: () => void
  /** Other options are in force. */
  renewed: () => void
}

/** Options that a pipeline may change: a copy, also of the groups that are changed. */
export function ownOptions(options: ProviderOptions): ProviderOptions {
  const { batch, backfill, rate, backoff } = options
  return {
    ...options,
    batch: { ...batch },
    backfill: { ...backfill },
    rate: { ...rate },
    backoff: { ...backoff },
  }
}

/** `options`: those of the pipeline, which are changed in place. */
export function createOptionsRenewal(
  { env, transport, keyring, accessRenewed, renewed }: Deps,
  options: ProviderOptions,
): (next: ProviderOptions) => void {
  return (next) => {
    const { batch, backfill, rate, backoff } = options
    const before = { connection: transportOptions(options, env), access: accessOf(options) }
    Object.assign(options, next, {
      batch: Object.assign(batch, next.batch),
      backfill: Object.assign(backfill, next.backfill),
      rate: Object.assign(rate, next.rate),
      backoff: Object.assign(backoff, next.backoff),
    })
    const connection = transportOptions(options, env)
    if (!isDeepStrictEqual(connection, before.connection)) transport.renew(connection)
    renewed()
    const access = accessOf(options)
    if (isDeepStrictEqual(access, before.access)) return
    // It never rejects. A reload does not wait for a token service that does not answer.
    void keyring.use(access).then(accessRenewed)
  }
}

function accessOf({ ca, clientCertificate, proxy, credentials }: ProviderOptions) {
  return { ca, clientCertificate, proxy, credentials }
}
