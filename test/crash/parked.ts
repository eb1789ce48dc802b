// parked.ts: parked vehicles that send equal bytes and use packet identifiers again from 1, over connections
// that are cut while messages and acks are under way, as a command:
//
//   node test/crash/parked.ts [--messages 20000] [--reconnects 50] [--kills 5] [--seed N]
//
// Of the vehicles, one third takes the lowest free identifier, one third starts at 1 on each connection, and
// one third counts up. `--kills` of the cuts are kills of the daemon. Prints a JSON report. Exit status 1 if a
// reading was lost.

import { parseArgs } from 'node:util'
import { setTimeout as pauseMs } from 'node:timers/promises'
import { createDevice, type Device } from '../support/mqtt-device.ts'
import { createRandom } from '../support/random.ts'
import { openCrashWorld } from './crash-world.ts'

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '20000' },
    reconnects: { type: 'string', default: '50' },
    kills: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})

const vehiclesCount = 30
const window = 4
const perVehicle = Math.ceil(Number(values.messages) / vehiclesCount)
const reconnects = Number(values.reconnects)
const kills = Number(values.kills)
const ways = ['lowest', 'restarts', 'counts'] as const

type Vehicle = {
  name: string
  way: (typeof ways)[number]
  published: number
  counter: number
  /** Packet identifiers without a PUBACK, in order. */
  unacked: number[]
  link: Device | null
}

const vehicles = Array.from({ length: vehiclesCount }, (_, index): Vehicle => {
  const way = ways[index % ways.length]!
  return { name: `parked-${way}-${index}`, way, published: 0, counter: 0, unacked: [], link: null }
})

const random = createRandom(Number(values.seed))
await using world = await openCrashWorld({ random })
let daemon = world.start()
let port = (await daemon.ready)!.mqttPort
const driving = vehicles.map(drive)
let resendsStored = 0
for (let cut = 1; cut <= reconnects; cut += 1) {
  await publishedAtLeast((cut / (reconnects + 1)) * perVehicle * vehiclesCount)
  const isKill = cut % Math.ceil(reconnects / Math.max(1, kills)) === 0 && kills > 0
  if (isKill) {
    resendsStored += (await daemon.status())?.totals.resendsStored ?? 0
    daemon.kill()
    await daemon.ended
    daemon = world.start()
    port = (await daemon.ready)!.mqttPort
  } else for (const { link } of vehicles) link?.destroy()
}
await Promise.all(driving)
resendsStored += (await daemon.status())?.totals.resendsStored ?? 0
world.fleet.disconnect()
await world.finishWith(daemon)
const accepted = new Map<string, number>()
for await (const { payload } of world.service.accepted())
  accepted.set(payload.deviceIdentifier.id, (accepted.get(payload.deviceIdentifier.id) ?? 0) + 1)
report()

async function publishedAtLeast(count: number): Promise<void> {
  while (vehicles.reduce((sum, { published }) => sum + published, 0) < count) await pauseMs(2)
}

async function drive(vehicle: Vehicle): Promise<void> {
  while (vehicle.published < perVehicle || vehicle.unacked.length > 0) {
    const link = await createDevice({ port, clientId: vehicle.name }).catch(() => null)
    vehicle.link = link
    try {
      await link?.connect({ clean: false })
      if (link !== null) await talk(vehicle, link)
    } catch (error) {
      if (link?.closed !== true) throw error
    }
    link?.destroy()
    await pauseMs(5)
  }
}

async function talk(vehicle: Vehicle, link: Device): Promise<void> {
  const { unacked, name } = vehicle
  if (vehicle.way === 'restarts') vehicle.counter = 0
  const publish = (messageId: number, dup: boolean) =>
    link.publish({ topic: `parked/${name}`, payload: '{"lat":52.5,"lon":13.4}', messageId, dup })
  for (const messageId of unacked) publish(messageId, true)
  let read = 0
  for (;;) {
    while (unacked.length < window && vehicle.published < perVehicle) {
      vehicle.published += 1
      const messageId = nextId(vehicle)
      unacked.push(messageId)
      publish(messageId, false)
      await pauseMs(1)
    }
    if (unacked.length === 0) return
    await link.acked(read + 1)
    for (; read < link.acks.length; read += 1) {
      const place = unacked.indexOf(link.acks[read]!.messageId)
      if (place >= 0) unacked.splice(place, 1)
    }
  }
}

function nextId(vehicle: Vehicle): number {
  if (vehicle.way === 'lowest') vehicle.counter = 0
  do vehicle.counter = (vehicle.counter % 65_535) + 1
  while (vehicle.unacked.includes(vehicle.counter))
  return vehicle.counter
}

function report(): void {
  const sums = ways.map((way) => {
    const own = vehicles.filter((vehicle) => vehicle.way === way)
    const published = own.reduce((sum, vehicle) => sum + vehicle.published, 0)
    const missing = (vehicle: Vehicle) => vehicle.published - (accepted.get(vehicle.name) ?? 0)
    const lost = own.reduce((sum, vehicle) => sum + Math.max(0, missing(vehicle)), 0)
    const twice = own.reduce((sum, vehicle) => sum + Math.max(0, -missing(vehicle)), 0)
    return { way, published, lost, twice }
  })
  const { seed } = values
  const line = { seed, reconnects, kills, resendsStored, ways: sums, violations: world.violations }
  process.stdout.write(`${JSON.stringify(line)}\n`)
  process.exitCode = sums.some(({ lost }) => lost > 0) || world.violations.length > 0 ? 1 : 0
}
