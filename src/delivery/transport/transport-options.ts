// transport-options.ts: makes the transport options of a provider, secrets revealed, for the sender thread
// and the connection check.

import type { ProviderOptions } from '../delivery-options.ts'
import { proxyFor } from '../proxy.ts'
import type { Environment } from '../proxy.ts'
import type { TransportOptions } from './transport.ts'

/** Throws CONFIG_INVALID where the environment names an invalid proxy. */
export function transportOptions(options: ProviderOptions, env: Environment): TransportOptions {
  const { baseUrl, providerKey, connectTimeoutMs, compress } = options
  const { ca, clientCertificate } = options
  const tls: TransportOptions['tls'] = ca === null ? {} : { ca }
  if (clientCertificate !== null) {
    const { cert, key, passphrase } = clientCertificate
    Object.assign(tls, { cert, key: key.reveal() }, passphrase && { passphrase: passphrase.reveal() })
  }
  return {
    baseUrl,
    providerKey,
    connections: options.maxInFlight,
    connectTimeoutMs,
    compress,
    tls,
    proxy: proxyFor(baseUrl, options.proxy, env),
  }
}
