// credentials-chain.ts: the credentials that the AWS tools would find on this machine, by their own package.
//
// Asked anew each time: the package would go on with what it has by the wall clock, which may be wrong, and with what it
// has read of the shared files for as long as the process lives.

import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import type { defaultProvider } from '@aws-sdk/credential-provider-node'
import { proxyEnvironment } from '../proxy.ts'
import type { Environment } from '../proxy.ts'
import type { ProxyOptions } from '../delivery-options.ts'

type Provider = ReturnType<typeof defaultProvider>

/** Its warnings go to the console otherwise, in the middle of the log. */
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** To a token service; one call at a time is made. */
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
    // Loaded where it is asked for: it is the largest of our packages, and most configs do without it.
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
      // For token services, which lie where the ingestion API does; containers and instances answer on the machine.
      clientConfig: { requestHandler },
    })
  }
}
