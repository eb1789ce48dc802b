// fuzz.ts: an attacker that sends packets with random faults: valid packets of each kind with bytes changed, added
// and removed, in random portions. The seed decides everything but the timing.

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { generate, type Packet } from 'mqtt-packet'
import { createRandom, type Random } from '../../support/random.ts'
import type { Attack, AttackKit } from './attack-kit.ts'

const connections = 8

function validPacket(random: Random): Packet {
  const messageId = 1 + random.below(65_535)
  const qos = random.pick([0, 1, 2] as const)
  const topic = random.pick([
    'telemetry/v1/truck-3',
    'telemetry/v1/fuzzed',
    'tanks/tank-3/level',
    'calculated/sum-3',
    'elsewhere',
  ])
  const payload = random.pick([
    '',
    '{',
    'null',
    JSON.stringify({ ts: Date.now(), gps: { lat: 1, lon: 2 }, value: 1, lat: 1, n: 3 }),
    JSON.stringify({ ts: 'never', gps: { lat: 1e308, lon: [] } }),
    '['.repeat(500),
    'x'.repeat(random.below(3000)),
  ])
  const make: readonly (() => Packet)[] = [
    () => ({
      cmd: 'publish',
      topic,
      payload,
      qos,
      messageId,
      dup: random.chance(0.2),
      retain: random.chance(0.2),
    }),
    () => ({ cmd: 'publish', topic, payload, qos, messageId, dup: false, retain: false }),
    () => ({ cmd: 'subscribe', messageId, subscriptions: [{ topic, qos }] }),
    () => ({ cmd: 'unsubscribe', messageId, unsubscriptions: [topic] }),
    () => ({ cmd: 'pingreq' }),
    () => ({ cmd: random.pick(['puback', 'pubrec', 'pubrel', 'pubcomp'] as const), messageId }),
    () => ({ cmd: 'disconnect' }),
    () => connectPacket(random),
  ]
  return random.pick(make)()
}

function connectPacket(random: Random): Packet {
  const will = {
    topic: random.pick(['a', 'telemetry/v1/truck-4']),
    payload: Buffer.from('{}'),
    qos: 1,
    retain: false,
  }
  const user = random.pick(['fleet', 'nobody', ''])
  return {
    cmd: 'connect',
    protocolVersion: random.pick([3, 4, 5] as const),
    protocolId: random.pick(['MQTT', 'MQIsdp'] as const),
    clientId: `fuzz-${random.below(1000)}`,
    clean: random.chance(0.8),
    keepalive: random.below(65_536),
    ...(random.chance(0.2) ? { will: { ...will, qos: 1 as const } } : {}),
    ...(random.chance(0.2) ? { username: user, password: Buffer.from('x') } : {}),
  }
}

/** Most packets stay valid, so that the faults behind them are reached. */
function fuzzedPacket(random: Random, protocolVersion: 4 | 5): Buffer {
  const bytes = generate(validPacket(random), { protocolVersion })
  if (random.chance(0.6)) return bytes
  switch (random.below(6)) {
    case 0:
      bytes[random.below(bytes.length)] = random.below(256)
      return bytes
    case 1:
      for (let count = random.below(8); count >= 0; count -= 1)
        bytes[random.below(bytes.length)] = random.below(256)
      return bytes
    case 2:
      return bytes.subarray(0, random.below(bytes.length) + 1)
    case 3:
      return Buffer.concat([
        bytes,
        Buffer.from(Array.from({ length: random.below(20) }, () => random.below(256))),
      ])
    case 4:
      // Another length than what follows.
      if (bytes.length > 1) bytes[1] = random.below(256)
      return bytes
    default:
      return Buffer.from(Array.from({ length: 1 + random.below(60) }, () => random.below(256)))
  }
}

export const fuzz: Attack = {
  name: 'fuzz',
  does: 'sends packets with random faults, --packets in all',
  async run(kit) {
    const left = () => kit.target.packets - kit.counts.packets
    await Promise.all(
      Array.from({ length: connections }, async (_, index) => {
        const random = createRandom(kit.target.seed * 1000 + index)
        for (let turn = 0; left() > 0 && !kit.over; turn += 1) {
          const socket = random.chance(0.95) ? await kit.join(`fuzz-${index}`) : await kit.open()
          if (socket === null) await kit.pause(20)
          else await sendSome(kit, socket, random, Math.min(left(), 200))
        }
      }),
    )
  },
}

async function sendSome(kit: AttackKit, socket: Socket, random: Random, most: number): Promise<void> {
  const { version } = kit.target
  let sent = 0
  const ended = once(socket, 'close').catch(() => undefined)
  while (sent < most && !socket.destroyed) {
    const count = Math.min(most - sent, 1 + random.below(20))
    const bytes = Buffer.concat(Array.from({ length: count }, () => fuzzedPacket(random, version)))
    sent += count
    kit.counts.packets += count
    const cut = random.below(bytes.length + 1)
    if (!(await kit.write(socket, bytes.subarray(0, cut)))) break
    if (random.chance(0.3)) await new Promise(setImmediate)
    if (!(await kit.write(socket, bytes.subarray(cut)))) break
  }
  // A connection that the gateway keeps open is left; what it was sent has been read by then.
  socket.end()
  await Promise.race([ended, kit.pause(50)])
  socket.destroy()
}
