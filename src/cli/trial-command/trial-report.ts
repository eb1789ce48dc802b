// trial-report.ts: the output of the trial: addresses, a command to try, messages that were published by
// hand, and the counts of all publishers.
//
// A terminal gets the counts as a block that is drawn again each second. A pipe gets one line a second, and a
// condition when it begins or ends; a pipe that nobody reads gets none until it is read again.

import { Help } from 'commander'
import type { Clock } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import { visible } from '../../std/quote.ts'
import type { Gateway } from '../../app/app.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { Fleet } from '../../simulate/simulate.ts'
import type { LiveOutput } from '../terminal/live-output.ts'
import type { HandPublished } from './hand-published.ts'

export type TrialReport = {
  welcome(places: { service: string; folder: string }): void
  tick(hand: HandPublished): void
  /** An event with its time, in lines that stay. */
  show(at: number, lines: readonly string[]): void
  farewell(): void
}

type Deps = { gateway: Gateway; sandbox: Sandbox; fleet: Fleet; clock: Clock; output: LiveOutput }

const timeIndent = ' '.repeat('22:08:24  '.length)

export function createTrialReport({ gateway, sandbox, fleet, clock, output }: Deps): TrialReport {
  /** The request whose payload was shown last; it is not shown again. */
  let shown: string | null = null
  let conditionsBefore = new Set<string>()
  return { welcome, tick, show, farewell }

  function welcome({ service, folder }: { service: string; folder: string }): void {
    const [mqtt = ''] = gateway.addresses.mqtt
    output.print([
      'Vehicles, gateway and ingestion API are running:',
      `  broker for devices    ${mqtt}`,
      `  page of the gateway   ${gateway.addresses.ops}/`,
      `  received by the API   ${new URL('/sandbox/received?limit=3', service).href}`,
      `  config, spool, log    ${folder}`,
      '',
      'Publish a message of your own:',
      ...sampleCommand(new URL(mqtt), output.width()),
      '',
      'Press Ctrl-C to end the trial.',
      '',
    ])
  }

  function tick(hand: HandPublished): void {
    if (output.isBehind()) return
    hand.read()
    if (output.isLive) output.draw(blockLines(hand.messages()))
    else output.print(plainLines())
  }

  function show(at: number, lines: readonly string[]): void {
    // A reason may be longer than a line of the terminal.
    const width = output.width() - timeIndent.length
    const wrapped = lines.flatMap((line) => new Help().boxWrap(line, width).split('\n'))
    output.print(wrapped.map((line, index) => `${index === 0 ? `${timeOf(at)}  ` : timeIndent}${line}`))
  }

  function counts() {
    const { totals, lanes, conditions } = gateway.status()
    const { payloadsAccepted: accepted, payloadsFailed: failed } = sandbox.stats()
    const waiting = lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)
    return { received: totals.messages, acked: totals.acked, accepted, failed, waiting, conditions }
  }

  function blockLines(byHand: number): string[] {
    const { received, acked, accepted, failed, waiting, conditions } = counts()
    const { devices, connected, latency } = fleet.stats()
    const [last] = sandbox.received({ limit: 1 })
    const p99 = latency.p99Ms === null ? '' : ` (vehicles: p99 ${latency.p99Ms.toFixed(1)} ms)`
    return [
      `${timeOf(clock.now())}  ${connected} of ${plural(devices, 'vehicle')} connected`,
      `received      ${plural(received, 'message')}, ${byHand} by hand`,
      `acknowledged  ${acked}${p99}`,
      `accepted      ${plural(accepted, 'payload')}, ${failed} failed, ${waiting} waiting`,
      ...(last === undefined
        ? []
        : [`newest        ${describe(last.payload)}`, `              request ${last.requestId}`]),
      ...conditions.flatMap(({ code, what }) => visible(`${code}: ${what}`)),
    ]
  }

  function plainLines(): string[] {
    const { received, acked, accepted, failed, waiting, conditions } = counts()
    const now = timeOf(clock.now())
    const lines = [
      `${now}  received ${received}, acknowledged ${acked}, accepted ${accepted}, failed ${failed}, waiting ${waiting}`,
      ...newest(),
    ]
    const present = new Set(conditions.map(({ code, what }) => visible(`${code}: ${what}`)))
    for (const text of present) if (!conditionsBefore.has(text)) lines.push(`${timeIndent}${text}`)
    for (const text of conditionsBefore)
      if (!present.has(text)) lines.push(`${timeIndent}${codeIn(text)} has ended.`)
    conditionsBefore = present
    return lines
  }

  function newest(): string[] {
    const [last] = sandbox.received({ limit: 1 })
    if (last === undefined || last.requestId === shown) return []
    shown = last.requestId
    return [`${timeIndent}<- ${describe(last.payload)}`, `${timeIndent}   request ${last.requestId}`]
  }

  function farewell(): void {
    const { acked, accepted } = counts()
    output.end()
    output.print([
      `The trial ends: ${plural(acked, 'message')} acknowledged, ${plural(accepted, 'payload')} accepted by the API.`,
    ])
  }
}

/** For the shell, which puts the present time into the message. It is one command, also in two lines. */
function sampleCommand({ hostname, port }: URL, width: number): string[] {
  const publish = `  mosquitto_pub -h ${hostname} -p ${port} -q 1 -t telemetry/v1/my-truck`
  const message = `-m '{"ts":'$(date +%s)'000,"gps":{"lat":52.5164,"lon":13.3777}}'`
  return publish.length + message.length < width
    ? [`${publish} ${message}`]
    : [`${publish} \\`, `    ${message}`]
}

function describe(payload: unknown): string {
  const { deviceIdentifier, gps } = payload as {
    deviceIdentifier?: { id?: string }
    gps?: { latitude?: number; longitude?: number; speed?: number }
  }
  const place = gps?.latitude === undefined ? '' : ` at ${gps.latitude},${gps.longitude}`
  const speed = gps?.speed === undefined ? '' : `, ${gps.speed} km/h`
  return visible(`${deviceIdentifier?.id ?? 'a device'}${place}${speed}`)
}

function codeIn(text: string): string {
  return text.slice(0, text.indexOf(':'))
}

function timeOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(11, 19)
}
