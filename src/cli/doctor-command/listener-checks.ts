// listener-checks.ts: whether devices and programs reach the daemon: a running daemon accepts connections on
// each configured address; without one each address is free. Where the daemon could not open one, another
// program may answer there: then what the daemon says counts.

import { connect, createServer } from 'node:net'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import type { Config } from '../../config/config.ts'
import { listenUrlText } from '../../ingest/config.ts'
import { opsUrl } from '../../ops/config.ts'
import type { Status } from '../../ops/ops.ts'
import type { Finding } from '../check-command/connection-findings.ts'

/** The daemon that runs with the config. */
export type RunningDaemon = { status: Status; isLocal: boolean }

type Address = { url: string; host: string; port: number }

const connectMs = 5000
const name = 'listeners'

export async function* checkListeners(config: Config, daemon: RunningDaemon | null): AsyncGenerator<Finding> {
  const { ingest, ops } = config
  const mqtt = ingest.broker.listeners.map(({ url }) => ({ ...url, url: listenUrlText(url) }))
  const all = [...mqtt, { url: opsUrl(ops.listen, ops.tls === undefined ? 'http' : 'https'), ...ops.listen }]
  if (daemon === null) {
    for (const address of all) yield await checkFree(address)
    return
  }
  if (!daemon.isLocal) {
    yield { name, state: 'skipped', what: 'The daemon runs on another machine.' }
    return
  }
  const { addresses: open, conditions } = daemon.status
  const failures = conditions.filter(
    ({ code }) => code === 'LISTENER_FAILED' || code === 'HTTP_LISTENER_FAILED',
  )
  for (const { what, why, act } of failures) yield { name, state: 'failed', what, why, act }
  const isFailed = (url: string) => failures.some(({ key }) => key === url)
  for (const address of all) {
    // The system chose the port; the daemon says which.
    if (address.port === 0 || isFailed(address.url)) continue
    yield await checkAnswers(address)
  }
  for (const url of open) {
    const port = Number(/:(\d+)(?:\/.*)?$/.exec(url)?.[1])
    if (mqtt.some((one) => one.port === port)) continue
    const isChosen = mqtt.some((one) => one.port === 0)
    if (isChosen) yield await checkAnswers({ url, host: hostIn(url), port })
    else
      yield {
        name,
        state: 'warning',
        what: `The daemon listens on ${url}, which the config does not name.`,
        act: 'Restart the daemon: listeners of a changed config need it.',
      }
  }
}

function hostIn(url: string): string {
  return /^\w+:\/\/(?:\[([^\]]+)\]|([^:]+)):\d+(?:\/.*)?$/.exec(url)?.slice(1).find(Boolean) ?? '127.0.0.1'
}

/** An address for all interfaces is reached over loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

function checkAnswers({ url, host, port }: Address): Promise<Finding> {
  return new Promise((resolve) => {
    const socket = connect({ host: reachable(host), port })
    const end = (finding: Finding) => {
      socket.destroy()
      resolve(finding)
    }
    const failed = (why: string): Finding => ({
      name,
      state: 'failed',
      what: `The daemon runs and ${url} accepts no connection.`,
      why: `${why}.`,
      act: 'If the config was changed, restart the daemon; else see its log and the firewall.',
    })
    socket.setTimeout(connectMs, () => end(failed(`No answer within ${connectMs / 1000} s`)))
    socket.once('connect', () => end({ name, state: 'ok', what: `${url} accepts connections.` }))
    socket.on('error', (error) => end(failed(messageOf(error))))
  })
}

/** Listens there for a moment, as the daemon would. */
function checkFree({ url, host, port }: Address): Promise<Finding> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', (error) =>
      resolve({
        name,
        state: 'failed',
        what: `The daemon cannot listen on ${url}.`,
        why: `${messageOf(error)}.`,
        act: cureOf(codeOf(error), port),
      }),
    )
    server.listen({ host, port, exclusive: true }, () =>
      server.close(() => resolve({ name, state: 'ok', what: `${url} is free for the daemon.` })),
    )
  })
}

function cureOf(code: string | undefined, port: number): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Another process has the port: \`ss -ltnp 'sport = :${port}'\` shows it. Stop it, or change the port.`
    case 'EACCES':
      return 'Use a port above 1023, or give the unit CAP_NET_BIND_SERVICE.'
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'Use an address of this machine (`ip address`), or 0.0.0.0 for all.'
    case undefined:
    default:
      return 'Change the address in the config.'
  }
}
