// run.ts: attackers against the real daemon, as a command: `npm run test:hostile -- [--only NAME,NAME] [--routes tcp/4,wss/5]
// [--seconds 10] [--seed 1] [--packets 50000] [--settle 60] [--list]
// [--properties 1000000]`.
//
// Runs each attack over TCP, TLS and WebSocket with and without TLS, and with MQTT 3.1.1 and 5: of the 8 routes it takes
// 2 in turn, or all that --routes names (`--routes all` for all).
//
// Prints a line for each attack: latency of the honest clients alone and beside the attacker, newcomers, RssAnon, and
// what is wrong. Exit status 1 when a rule is broken. A name ending in * takes all that begin so.
// With --properties it reads as many random packets of MQTT 5 in this process instead, half of them messages.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fuzzProperties } from '../support/mqtt5-fuzz.ts'
import { fuzzLayouts } from '../support/mqtt5-layout-fuzz.ts'
import { suits, type Attack } from './attackers/attack-kit.ts'
import { attacks } from './attackers/attacks.ts'
import { runAttack } from './hostile.ts'
import { keepCompiledCode } from '../support/compiled-code.ts'
import { allRoutes, routeOf, type Route } from './route.ts'
import { heading, lineOf } from './row-text.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    routes: { type: 'string' },
    seconds: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    packets: { type: 'string', default: '50000' },
    settle: { type: 'string', default: '60' },
    list: { type: 'boolean', default: false },
    properties: { type: 'string' },
  },
})

/** Two that follow each other have both versions, one of them has TLS and one is a WebSocket. */
const inTurn = ['tcp/4', 'wss/5', 'ws/4', 'tls/5', 'tcp/5', 'wss/4', 'ws/5', 'tls/4'].map(routeOf)

keepCompiledCode()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
const patterns = values.only?.split(',') ?? ['*']
const isWanted = (name: string) =>
  patterns.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one))
const wanted = attacks.filter(({ name }) => isWanted(name))
if (wanted.length === 0)
  throw new Error(`no attack has this name; there are ${attacks.map(({ name }) => name).join(', ')}`)
if (values.properties !== undefined) readPackets(Number(values.properties), Number(values.seed))
else if (values.list)
  for (const { name, does } of wanted) process.stdout.write(`${name.padEnd(26)} ${does}\n`)
else await runAll()

/** Throws at the first packet that is read wrongly. */
function readPackets(count: number, seed: number): void {
  const messages = fuzzProperties(Math.ceil(count / 2), seed)
  const others = fuzzLayouts(Math.floor(count / 2), seed)
  process.stdout.write(`${JSON.stringify({ seed, messages, others })}\n`)
}

async function runAll(): Promise<void> {
  const rows = wanted.flatMap((attack, index) => routesOf(attack, index).map((route) => ({ attack, route })))
  let broken = 0
  process.stdout.write(`${heading}\n`)
  const folder = await mkdtemp(join(tmpdir(), 'gateway-hostile-'))
  try {
    for (const { attack, route } of rows) {
      const row = await runAttack(folder, attack, {
        ...route,
        seconds: Number(values.seconds),
        seed: Number(values.seed),
        packets: Number(values.packets),
        settleSeconds: Number(values.settle),
        slack: 1,
        warmUpSeconds: 3,
        aloneSeconds: 3,
      })
      if (row.violations.length > 0) broken += 1
      process.stdout.write(`${lineOf(row)}\n`)
    }
    process.stdout.write(`${rows.length} rows, ${broken} not as expected\n`)
    process.exitCode = broken > 0 ? 1 : 0
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function routesOf(attack: Attack, index: number): readonly Route[] {
  const { routes } = values
  const suitable = (from: readonly Route[]) => from.filter((route) => suits(attack, route))
  if (routes !== undefined) return suitable(routes === 'all' ? allRoutes : routes.split(',').map(routeOf))
  const found = suitable(inTurn)
  return [0, 1].map((more) => found[(2 * index + more) % found.length]!)
}
