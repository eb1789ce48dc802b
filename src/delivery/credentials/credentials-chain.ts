// credentials-chain.ts: finds the credentials that the AWS tools would use on this machine, with the AWS
// package.
//
// Each lookup has a provider of its own: the package caches credentials by the wall clock, which may be
// wrong, and lets later requests wait for one that never ends. A lookup that is given up ends its requests
// and processes, which the package neither bounds nor shows; Node reports them on its diagnostics channels.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { ChildProcess } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import type { ClientRequest } from 'node:http'
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

/** Of the lookup that the running code belongs to. */
const lookups = new AsyncLocalStorage<AbortSignal>()

subscribe('http.client.request.created', (message) => {
  const { request } = message as { request: ClientRequest }
  whenGivenUp(() => request.destroy(new Error('the lookup of credentials was given up')))
})
subscribe('child_process', (message) => {
  const { process: started } = message as { process: ChildProcess }
  whenGivenUp(() => {
    if (started.exitCode === null && started.pid !== undefined) killAll(started.pid)
    // The package waits for their end.
    started.stdout?.destroy()
    started.stderr?.destroy()
  })
})

/** With what it started: the package lets a shell start the process. What stays counts as hanging. */
function killAll(pid: number): void {
  try {
    // One that is stopped starts no child after they were listed.
    process.kill(pid, 'SIGSTOP')
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    for (const child of children.split(' ').filter(Boolean)) killAll(Number(child))
  } catch {
    // It has just ended, belongs to another user, or the kernel does not list its children.
  }
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // As above.
  }
}

function whenGivenUp(end: () => void): void {
  const ends = lookups.getStore()
  // The package tries some requests again.
  if (ends?.aborted) setImmediate(end)
  else ends?.addEventListener('abort', end, { once: true })
}

export function createChain(
  { env, proxy }: { env: Environment; proxy: ProxyOptions },
  { profile }: { profile: string | null },
): (ends: AbortSignal) => ReturnType<Provider> {
  return async (ends) => {
    // Loaded on first use: it is the largest of our packages, and most configs do not need it.
    const { defaultProvider } = await import('@aws-sdk/credential-provider-node')
    const proxyEnv = proxyEnvironment(proxy, env)
    const requestHandler = {
      httpAgent: new Agent({ ...agentOptions, proxyEnv }),
      httpsAgent: new TlsAgent({ ...agentOptions, proxyEnv }),
    }
    const provider = defaultProvider({
      ...(profile === null ? {} : { profile }),
      ignoreCache: true,
      logger: silent,
      // For token services, which are reached like the ingestion API. Containers and instances answer
      // locally.
      clientConfig: { requestHandler },
    })
    return lookups.run(ends, () => provider({ forceRefresh: true }))
  }
}
