// trial-report.ts: the output of the trial: addresses, a command to try, and a line of counts each second.

import type { Writable } from 'node:stream'
import type { Clock } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import type { Gateway } from '../../app/app.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { Fleet } from '../../simulate/simulate.ts'

export type TrialReport = {
  welcome(places: { service: string; folder: string }): void
  tick(): void
  farewell(): void
}

type Deps = { gateway: Gateway; sandbox: Sandbox; fleet: Fleet; clock: Clock; stdout: Writable }

export function createTrialReport({ gateway, sandbox, fleet, clock, stdout }: Deps): TrialReport {
  const print = (line: string) => void stdout.write(`${line}\n`)
  /** The request whose payload was shown last; it is not shown again. */
  let shown: string | null = null

  function welcome({ service, folder }: { service: string; folder: string }): void {
    const [mqtt = ''] = gateway.addresses.mqtt
    const { hostname, port } = new URL(mqtt)
    print('Vehicles, gateway and ingestion API are running:')
    print(`  broker for devices    ${mqtt}`)
    print(`  gateway status        ${gateway.addresses.ops}/status`)
    print(`  received by the API   ${new URL('/sandbox/received?limit=3', service).href}`)
    print(`  config, spool, log    ${folder}`)
    print('')
    print('Publish a message of your own:')
    print(`  mosquitto_pub -h ${hostname} -p ${port} -q 1 -t telemetry/v1/my-truck -m ${sampleMessage()}`)
    print('')
    print('Press Ctrl-C to end the trial.')
    print('')
  }

  function tick(): void {
    const { published, acked, latency } = fleet.stats()
    const { payloadsAccepted, payloadsFailed } = sandbox.stats()
    const status = gateway.status()
    const waiting = status.lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)
    const p99 = latency.p99Ms === null ? '' : ` (p99 ${latency.p99Ms.toFixed(1)} ms)`
    print(
      `${timeOf(clock.now())}  published ${published}, acknowledged ${acked}${p99}, accepted ${payloadsAccepted}` +
        `, failed ${payloadsFailed}, waiting ${waiting}${newest()}`,
    )
    for (const { code, what } of status.conditions) print(`          ${code}: ${what}`)
  }

  function newest(): string {
    const [last] = sandbox.received({ limit: 1 })
    if (last === undefined || last.requestId === shown) return ''
    shown = last.requestId
    return `  <- ${describe(last.payload)} in request ${last.requestId}`
  }

  function farewell(): void {
    const { acked } = fleet.stats()
    print(
      `The trial ends: ${plural(acked, 'message')} acknowledged, ${plural(sandbox.stats().payloadsAccepted, 'payload')} accepted by the API.`,
    )
  }

  return { welcome, tick, farewell }
}

/** A message for the shell, which puts the present time into it. */
function sampleMessage(): string {
  return `"{\\"ts\\":$(date +%s%3N),\\"gps\\":{\\"lat\\":52.5164,\\"lon\\":13.3777,\\"speed\\":48.5,\\"heading\\":90,\\"moving\\":true}}"`
}

function describe(payload: unknown): string {
  const { deviceIdentifier, gps } = payload as {
    deviceIdentifier?: { id?: string }
    gps?: { latitude?: number; longitude?: number; speed?: number }
  }
  const place =
    gps?.latitude === undefined ? '' : ` at ${gps.latitude},${gps.longitude} ${gps.speed ?? '?'} km/h`
  return `${deviceIdentifier?.id ?? 'a device'}${place}`
}

function timeOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(11, 19)
}
