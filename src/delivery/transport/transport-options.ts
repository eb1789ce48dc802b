// transport-options.ts: makes the transport options of a provider, secrets revealed, for the sender thread
// and the connection check.

import type { ProviderOptions } from '../delivery-options.ts'
import { proxyFor } from '../proxy.ts'
import type { Environment } from '../proxy.ts'
import type { TransportOptions } from './transport.ts'

/** Throws CONFIG_INVALID where the environment names an invalid proxy. */
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
