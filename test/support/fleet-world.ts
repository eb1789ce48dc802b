// fleet-world.ts: a fleet that sends to a real gateway, whose clock runs faster, so that a device is silent after
// a second: what the page shows of it. truck-7 stops; truck-9 is refused; the service refuses payloads of truck-5;
// new-truck is not in the device table.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { configText, odometerSource } from './config-text.ts'
import { createFastClock } from './fast-clock.ts'
import { newFolder } from './folders.ts'
import { createDevice } from './mqtt-device.ts'
import { usersText, withViews, type PageWorld } from './page-world.ts'
import { startPipeline } from './pipeline-world.ts'

const speed = 30
const publishEveryMs = 150

export type FleetWorld = PageWorld & {
  /** The device table. */
  devicesFile: string
  /** The service is gone: connections to it are refused. */
  outage(): Promise<void>
}

type FleetOptions = { trucks?: number; hasUsers?: boolean }

const faults = {
  fail: [{ device: 'truck-5', message: 'The odometer is lower than before.', field: 'signals[0].value' }],
}

export async function fleetWorld({ trucks = 30, hasUsers = false }: FleetOptions = {}): Promise<FleetWorld> {
  const folder = await newFolder()
  const names = Array.from({ length: trucks }, (_, index) => `truck-${index + 1}`)
  const rows = names.map((name, index) => `${name},TR-${String(index + 1).padStart(4, '0')}`)
  await writeFile(join(folder, 'devices.csv'), `device,asset_id\n${rows.join('\n')}\n`)
  const clock = createFastClock(speed)
  const users = hasUsers ? `users: ${await usersText(folder)}` : ''
  const pipeline = await startPipeline({
    folder,
    clock,
    sandbox: { faults },
    config: configText({
      sources: odometerSource,
      delivery: 'batch: { linger: 100ms }',
      ops: users,
      more: 'devices: { file: devices.csv, unknown: quarantine }',
    }),
  })
  const depot = await pipeline.device('depot')
  const seventh = await pipeline.device('truck-7')
  const port = Number(new URL(pipeline.gateway.addresses.mqtt[0] ?? '').port)
  let round = 0
  let messageId = 0
  const publish = (device: typeof depot, name: string, content: object | string) =>
    device.publish({
      topic: `telemetry/v1/${name}`,
      payload: typeof content === 'string' ? content : JSON.stringify(content),
      messageId: (messageId = (messageId % 60_000) + 1),
    })
  const sendAll = () => {
    round += 1
    for (const [index, name] of names.entries()) {
      if (name === 'truck-7' ? round > 10 : name === 'truck-9' || (trucks > 100 && round > 1)) continue
      publish(name === 'truck-7' ? seventh : depot, name, positionOf(index, round, clock.now()))
    }
    if (round % 5 === 0) publish(depot, 'truck-3', 'not JSON')
    if (round === 2) publish(depot, 'new-truck', positionOf(3, round, clock.now()))
    if (round === 11) seventh.destroy()
  }
  const timer = setInterval(sendAll, publishEveryMs)
  const stop = () => clearInterval(timer)
  onTestFinished(stop)
  sendAll()
  const refused = await createDevice({ port, clientId: 'truck-9' })
  onTestFinished(() => refused.destroy())
  const will = { topic: 'status', payload: Buffer.from('gone'), qos: 0 as const, retain: true }
  await refused.connect({ protocolVersion: 5, will }).catch(() => undefined)
  return {
    ...withViews(pipeline),
    devicesFile: join(folder, 'devices.csv'),
    async outage() {
      await pipeline.sandbox.close()
    },
  }
}

/** Round about a depot, some kilometres apart. */
function positionOf(index: number, round: number, now: number) {
  const angle = index * 2.4
  const distance = 0.02 + (0.25 * ((index * 7919) % 101)) / 101
  const lat = 52.5 + Math.sin(angle) * distance + round * 1e-5
  const lon = 13.4 + Math.cos(angle) * distance * 1.6
  return {
    ts: now,
    lat: Number(lat.toFixed(5)),
    lon: Number(lon.toFixed(5)),
    odometer: 1000 + index * 10 + round,
  }
}
