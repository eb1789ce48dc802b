// transport-options.ts: what leads to one provider, in plain values: it is handed to the thread of sender-worker.ts, to which a Secret
// cannot go as one.

import type { ProviderOptions } from '../delivery-options.ts'
import { proxyFor } from '../proxy.ts'
import type { Environment } from '../proxy.ts'
import type { TransportOptions } from './submit.ts'

/** Throws CONFIG_INVALID where the environment names a proxy that is none. */
export function transportOptions(options: ProviderOptions, env: Environment): TransportOptions {
  const { baseUrl, providerKey, timeoutMs, connectTimeoutMs, responseBytesMax, ca } = options
  const { cert, key, passphrase } = options.clientCertificate ?? { cert: null, key: null, passphrase: null }
  return {
    baseUrl,
    providerKey,
    connections: options.maxInFlight,
    timeoutMs,
    connectTimeoutMs,
    responseBytesMax,
    ca,
    cert,
    key: key?.reveal() ?? null,
    passphrase: passphrase?.reveal() ?? null,
    proxy: proxyFor(baseUrl, options.proxy, env),
  }
}
