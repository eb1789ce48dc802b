// aedes-port.ts: the connection of one client as aedes sees it. aedes keeps the clients by name: one that
// connects takes the place of the one before it, and the will of a connection that ends is taken.
//
//   CONNECT, whole and within the rules -> port, as a CONNECT of 3.1.1 without keepalive -> aedes
//        -> authenticate: who is it (client-admission.ts)
//        -> the earlier connection of this name is closed -> `ended` of its port
//        -> clientReady: CONNACK, and packets behind CONNECT are read (broker.ts)
//
// No further packet goes to aedes, and what it writes goes nowhere: the gate has the socket, and answers in
// the version of its client. The end of the socket closes the port, and then aedes takes the will. Used of
// aedes are its options, `handle`, `listen`, `close`, `publish`, events, and of a client `id`, `conn` and
// `close`.

import { Duplex, Readable } from 'node:stream'
import { Aedes, type AedesOptions, type Client } from 'aedes'
import { generate, writeToStream } from 'mqtt-packet'
import type { ConnectPacket, ConnectWill } from './packets/connect-packet.ts'

// Otherwise it keeps a buffer for each of 65,536 numbers, 10 MB of heap, for the few packets that aedes
// writes.
writeToStream.cacheNumbers = false

export type WillPacket = Parameters<Aedes['authorizePublish']>[1]
export type Done = (error?: Error | null) => void

/** aedes has ended the connection: a later one has its name. */
type PortOwner = { portEnded(): void }

export class AedesPort<Owner extends PortOwner = PortOwner> extends Duplex {
  readonly owner: Owner
  private readonly client: Client

  constructor(aedes: Aedes, owner: Owner, { clientId, will }: ConnectPacket) {
    super()
    this.owner = owner
    this.client = aedes.handle(this)
    this.push(
      generate({
        cmd: 'connect',
        protocolId: 'MQTT',
        protocolVersion: 4,
        clientId,
        clean: true,
        keepalive: 0,
        ...(will && { will: willOf(will) }),
      }),
    )
  }

  /** The socket of the client is closed. */
  close(): void {
    this.client.close()
  }

  override _read(): void {}

  override _write(_bytes: Buffer, _encoding: string, done: Done): void {
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.owner.portEnded()
    done(error)
  }
}

function willOf({ topic, payload, qos, retain }: ConnectWill) {
  return { topic, payload, qos, retain }
}

/** An aedes without subscribers: no retained store, no offline queue, no emitter, no $SYS messages. */
class QuietAedes extends Aedes {
  // aedes calls it with or without the sending client before the callback; its types know one form only.
  override publish(_packet: WillPacket, clientOrDone: unknown, last?: Done): void {
    const done = typeof clientOrDone === 'function' ? (clientOrDone as Done) : last
    done?.(null)
  }
}

export function createAedes(hooks: Pick<AedesOptions, 'authenticate' | 'authorizePublish'>): Aedes {
  return new QuietAedes({
    // Bounds timers and queues that the gateway does not use, so that they cannot grow.
    queueLimit: 1,
    heartbeatInterval: 3_600_000,
    persistence: createAedesPersistence(),
    ...hooks,
  })
}

/**
 * The part of aedes-persistence that aedes calls for a clean session without subscriptions. Sessions are
 * stored by the gateway (stored-sessions/), and a will is taken when its connection breaks.
 */
function createAedesPersistence() {
  return {
    async setup() {},
    async cleanSubscriptions() {},
    async putWill() {},
    async delWill() {},
    streamWill: () => Readable.from([]),
    outgoingStream: () => Readable.from([]),
  }
}
