// credentials-chain.ts: finds the credentials that the AWS tools would use on this machine, with the AWS
// package.
//
// Each request is forced: the package would otherwise cache credentials by the wall clock, which may be
// wrong, and the shared files for the life of the process.

import { Agent as TlsAgent } from 'node:https'
import type { defaultProvider } from '@aws-sdk/credential-provider-node'
import { Agent } from '../../std/node-http.ts'
import { proxyEnvironment } from '../proxy.ts'
import type { Environment } from '../proxy.ts'
import type { ProxyOptions } from '../delivery-options.ts'

type Provider = ReturnType<typeof defaultProvider>

/** Without it the package writes warnings to the console, between the lines of the log. */
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** For a token service, which gets one request at a time. */
const agentOptions = { keepAlive: false, maxSockets: 4 }

export function createChain(
  { env, proxy }: { env: Environment; proxy: ProxyOptions },
  { profile }: { profile: string | null },
): Provider {
  let provider: Provider | undefined
  return async () => {
    provider ??= await load()
    return provider({ forceRefresh: true })
  }

  async function load(): Promise<Provider> {
    // Loaded on first use: it is the largest of our packages, and most configs do not need it.
    const { defaultProvider } = await import('@aws-sdk/credential-provider-node')
    const proxyEnv = proxyEnvironment(proxy, env)
    const requestHandler = {
      httpAgent: new Agent({ ...agentOptions, proxyEnv }),
      httpsAgent: new TlsAgent({ ...agentOptions, proxyEnv }),
    }
    return defaultProvider({
      ...(profile === null ? {} : { profile }),
      ignoreCache: true,
      logger: silent,
      // For token services, which are reached like the ingestion API. Containers and instances answer
      // locally.
      clientConfig: { requestHandler },
    })
  }
}
