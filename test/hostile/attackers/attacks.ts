// attacks.ts: all attackers. Entry file of this folder.
//
//   attack-kit        connections of many addresses, writing with back-pressure, counts
//   websocket-frames  the frames of an attacker over WebSocket
//   floods            one kind of packet, as fast as the gateway takes it
//   partial-packets   packets that do not end, and slow writers
//   fillers           messages that the gateway keeps
//   heavy-messages    messages that take long to read
//   hoarders          many, idle and fast connections, guessed passwords, impostors, slow readers
//   port-attacks      the TLS handshake and the ops port
//   version5-attacks  what only MQTT 5 has
//   websocket-attacks requests for a WebSocket, and frames
//   fuzz              random faults

import type { Attack } from './attack-kit.ts'
import { fillers } from './fillers.ts'
import { floods } from './floods.ts'
import { fuzz } from './fuzz.ts'
import { heavyMessages } from './heavy-messages.ts'
import { connectionAttacks } from './hoarders.ts'
import { partialPackets } from './partial-packets.ts'
import { portAttacks } from './port-attacks.ts'
import { version5Attacks } from './version5-attacks.ts'
import { websocketAttacks } from './websocket-attacks.ts'

/** Shows what the harness itself costs: this row is never broken, whatever the gateway does. */
const control: Attack = {
  name: 'control',
  does: 'is none: one connection that sends PINGREQ each second',
  async run(kit) {
    const socket = await kit.join('control')
    if (socket === null) return
    const ping = Buffer.from([0xc0, 0])
    while (await kit.write(socket, ping)) await kit.pause(1000)
  },
}

export const attacks: readonly Attack[] = [
  control,
  ...floods,
  ...partialPackets,
  ...fillers,
  ...heavyMessages,
  ...connectionAttacks,
  ...portAttacks,
  ...version5Attacks,
  ...websocketAttacks,
  fuzz,
]
