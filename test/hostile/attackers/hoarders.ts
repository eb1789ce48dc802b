// hoarders.ts: attackers that open connections: many, idle, fast, with wrong passwords, with the client id of another,
// and clients that do not read their acknowledgements.

import type { Attack, AttackKit, OpenOptions } from './attack-kit.ts'

const position = (serial: number) => JSON.stringify({ ts: Date.now(), gps: { lat: 1, lon: 2 }, serial })

/** Keeps `count` connections open; each is opened again when it ends. */
function hoards(kit: AttackKit, count: number, work: (index: number, turn: number) => Promise<unknown>) {
  return kit.crowd(count, async (index, turn) => {
    // Spread over the first second: the listen queue of the system is not what is attacked.
    if (turn === 0) await kit.pause((index / count) * Math.min(1000, kit.target.seconds * 300))
    await work(index, turn)
    await kit.pause(200)
  })
}

async function stay(
  kit: AttackKit,
  socket: { destroyed: boolean; destroy(): unknown } | null,
): Promise<void> {
  if (socket === null) return
  while (!kit.over && !socket.destroyed) await kit.pause(250)
}

const addresses = (spread: boolean) => (spread ? 'of as many addresses' : 'of one address')
const from = (spread: boolean, index: number): OpenOptions => ({ stranger: spread ? index + 1 : 0 })

// Connected clients may cost what as many devices cost: 40 KB each, 90 KB with TLS (growthMbMax).
const hoarders: readonly Attack[] = [
  ...[false, true].map((spread): Attack => {
    const count = spread ? 6000 : 3000
    return {
      name: spread ? 'raw-spread' : 'raw',
      does: `opens ${count} TCP connections ${addresses(spread)} and sends nothing`,
      run: (kit) =>
        hoards(kit, count, async (index) => stay(kit, await kit.open({ ...from(spread, index), raw: true }))),
    }
  }),
  {
    name: 'connected',
    does: 'opens 3,000 MQTT connections of one address and stays idle',
    growthMbMax: { plain: 120, tls: 270 },
    run: (kit) =>
      hoards(kit, 3000, async (index, turn) => stay(kit, await kit.join(`idle-${index}-${turn}`))),
  },
  {
    name: 'idle-5000',
    does: 'opens 5,000 MQTT connections of as many addresses and stays idle',
    growthMbMax: { plain: 200, tls: 450 },
    run: (kit) =>
      hoards(kit, 5000, async (index, turn) =>
        stay(kit, await kit.join(`idle-${index}-${turn}`, from(true, index))),
      ),
  },
  ...[false, true].map((spread): Attack => ({
    name: spread ? 'connects-spread' : 'connects',
    does: `connects without credentials 2,000 times a second ${spread ? 'from 5,000 addresses' : 'from one address'}`,
    run: (kit) => connectAtRate(kit, 2000, spread ? 5000 : 1),
  })),
]

/** As many as due, at most 500 at the same time. */
async function connectAtRate(kit: AttackKit, perS: number, addressCount: number): Promise<void> {
  const startedMs = performance.now()
  let [begun, open] = [0, 0]
  while (!kit.over) {
    const due = ((performance.now() - startedMs) * perS) / 1000
    for (; begun < due && open < 500; begun += 1) {
      open += 1
      const turn = begun
      const stranger = addressCount === 1 ? 0 : 1 + (turn % addressCount)
      const password = Buffer.from(`guess ${turn}`)
      void kit
        .join(`stranger-${turn}`, { stranger }, { username: 'nobody', password })
        .then((socket) => socket?.destroy())
        .finally(() => {
          open -= 1
        })
    }
    await kit.pause(2)
  }
}

function guesses(name: string, does: string, options: OpenOptions, user: (turn: number) => string): Attack {
  return {
    name,
    does,
    run: (kit) =>
      kit.crowd(16, async (index, turn) => {
        const password = Buffer.from(`guess ${index} ${turn}`)
        const socket = await kit.join(`guesser-${index}`, options, { username: user(turn), password })
        socket?.destroy()
      }),
  }
}

const guessers: readonly Attack[] = [
  guesses('passwords', 'guesses passwords of one user over 16 connections', {}, () => 'workshop'),
  guesses(
    'passwords-of-neighbours',
    'guesses passwords of the user of the honest client, from its address',
    { asNeighbour: true },
    () => 'fleet',
  ),
  guesses('user-names', 'guesses user names and passwords', {}, (turn) => `user-${turn}`),
]

const impostors: readonly Attack[] = [
  {
    name: 'thief',
    does: 'connects without a user name under the client id of the honest client, again and again',
    run: (kit) =>
      kit.crowd(1, async () => {
        const socket = await kit.join('honest-truck-1')
        await kit.pause(100)
        socket?.destroy()
      }),
  },
  {
    name: 'take-overs',
    does: 'connects 16 times at once under one client id of its own, again and again',
    run: (kit) =>
      kit.crowd(16, async () => {
        const socket = await kit.join('twins', {}, { clean: false })
        if (socket === null) return kit.pause(20)
        const bytes = kit.publish({ topic: 'telemetry/v1/truck-9', payload: position(1), qos: 2 })
        await kit.write(socket, bytes)
        return undefined
      }),
  },
  {
    name: 'slow-readers',
    does: 'publishes with QoS 1 on 200 connections of as many addresses and never reads an acknowledgement',
    run: (kit) =>
      kit.crowd(200, async (index, turn) => {
        const socket = await kit.join(`slow-${index}-${turn}`, { reads: false, stranger: index + 1 })
        if (socket === null) return kit.pause(200)
        let id = 0
        const payload = position(index)
        const next = () => {
          id = (id % 65_535) + 1
          return kit.publish({ topic: `telemetry/v1/truck-${index}`, payload, messageId: id })
        }
        while (await kit.write(socket, Buffer.concat(Array.from({ length: 200 }, next)))) await kit.pause(20)
        socket.destroy()
        return kit.pause(200)
      }),
  },
]

export const connectionAttacks: readonly Attack[] = [...hoarders, ...guessers, ...impostors]
