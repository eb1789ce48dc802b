// silence.ts: ends connections that nobody uses any more, by the time without a byte from the client.
//
//   MQTT keepalive given   1.5 times of it [MQTT-3.1.2-24]
//   keepalive 0            `idleTimeoutMs`; and TCP keep-alive finds peers that are gone
//   within a packet        `partialTimeoutMs`, and a lowest speed (partial-packet.ts)
//
// Any byte counts, and not only a whole packet: a large packet on a slow link takes longer than a keepalive.
// The time in which the gateway itself does not read does not count: a full spool must not end connections.
// One timer for all connections; nothing per message but a flag.

import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { ClientDropReason } from '../client-faults.ts'
import type { PartialPacket } from './partial-packet/partial-packet.ts'
import type { DeviceSocket } from './device-socket.ts'

export type SilenceOptions = {
  /** Time without a byte in the middle of a packet. */
  partialTimeoutMs: number
  /** For clients without a keepalive: the same between packets, and the time until TCP probes. */
  idleTimeoutMs: number
  tcpKeepaliveMs: number
}

export type Silence = { pass(elapsedMs: number): void }

type Deps = {
  connection: { readonly keepaliveMs: number; drop(reason: ClientDropReason): void }
  reader: {
    isReading(): boolean
    sawBytes(): boolean
    readonly partial: Pick<PartialPacket, 'isTooSlow'> | null
  }
}

/** Node's default is 10 probes a second apart: too short for a tracker in power saving. */
const probe = { intervalMs: 75_000, count: 9 }

export function createSilence({ connection, reader }: Deps, options: SilenceOptions): Silence {
  return new ConnectionSilence(connection, reader, options)
}

class ConnectionSilence implements Silence {
  private readonly connection: Deps['connection']
  private readonly reader: Deps['reader']
  private readonly options: SilenceOptions
  private silentMs = 0

  constructor(connection: Deps['connection'], reader: Deps['reader'], options: SilenceOptions) {
    this.connection = connection
    this.reader = reader
    this.options = options
  }

  pass(elapsedMs: number): void {
    const { connection, reader, options } = this
    const { partial } = reader
    if (reader.sawBytes()) {
      this.silentMs = 0
      // Most connections that send: no limit can be reached.
      if (partial === null) return
    } else this.silentMs += elapsedMs
    if (!reader.isReading()) {
      this.silentMs = 0
      return
    }
    const { silentMs } = this
    const { keepaliveMs } = connection
    if (partial?.isTooSlow(elapsedMs)) connection.drop('packet_too_slow')
    else if (partial !== null && silentMs >= options.partialTimeoutMs) connection.drop('packet_too_slow')
    else if (keepaliveMs > 0 && silentMs >= keepaliveMs * 1.5) connection.drop('keepalive_timeout')
    else if (keepaliveMs === 0 && silentMs >= options.idleTimeoutMs) connection.drop('idle_timeout')
  }
}

export function keepTcpAlive(socket: DeviceSocket, { tcpKeepaliveMs }: { tcpKeepaliveMs: number }): void {
  socket.setKeepAlive(true, tcpKeepaliveMs, probe.intervalMs, probe.count)
}

export type SilenceWatch = {
  add(connection: { passTime(elapsedMs: number): void }): void
  remove(connection: { passTime(elapsedMs: number): void }): void
  close(): void
}

const everyMs = 1000

export function createSilenceWatch(clock: Clock): SilenceWatch {
  const connections = new Set<{ passTime(elapsedMs: number): void }>()
  let cancel: CancelTimer | null = null

  function arm(): void {
    cancel = connections.size === 0 ? null : clock.after(everyMs, pass)
  }

  function pass(): void {
    arm()
    // Not the time on the clock: after a pause of the process, what arrived meanwhile is not read yet.
    for (const connection of connections) connection.passTime(everyMs)
  }

  return {
    add(connection) {
      connections.add(connection)
      if (cancel === null) arm()
    },
    remove: (connection) => void connections.delete(connection),
    close: () => cancel?.(),
  }
}
