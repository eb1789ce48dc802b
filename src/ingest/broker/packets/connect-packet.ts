// connect-packet.ts: reads a CONNECT of any version (3.1), and checks its layout, texts and properties.
//
//   protocol name, level, flags (1), keepalive (2)
//   properties                                        MQTT 5
//   client id
//   will properties (MQTT 5), will topic, will message where the flags say so
//   user name, password                               where the flags say so

import { quote } from '../../../std/quote.ts'
import type { ClientDropReason, PacketFault } from '../client-faults.ts'
import { binaryEnd, cutField, twoBytesAt } from './packet-bytes.ts'
import { badText, broken, textEndOf, type Version } from './packets.ts'
import { clientProperties, propertyFault, readProperties, type PropertyRules } from './property-rules.ts'

export type ConnectPacket = {
  readonly version: Version
  readonly clientId: string
  /** Clean Session; Clean Start in MQTT 5. */
  readonly clean: boolean
  readonly keepaliveS: number
  readonly userName: string | null
  readonly password: Buffer | null
  readonly will: ConnectWill | null
  readonly properties: ConnectProperties
}

export type ConnectWill = {
  readonly topic: string
  readonly payload: Buffer
  readonly qos: 0 | 1 | 2
  readonly retain: boolean
  /** The bytes of its properties, with their length; empty before MQTT 5. */
  readonly section: Buffer
}

/** Empty before MQTT 5. */
export type ConnectProperties = {
  /** The bytes of the values, by identifier. */
  readonly values: ReadonlyMap<number, Buffer>
  /** Of a name that comes twice, the last value. */
  readonly user: ReadonlyMap<string, string>
}

const flagReserved = 0x01
const flagClean = 0x02
const flagWill = 0x04
const flagWillRetain = 0x20
const flagPassword = 0x40
const flagUserName = 0x80
/** Bridges of Mosquitto set it in the protocol level. */
const bridgeBit = 0x80

/** Reads the CONNECT whose bytes behind the fixed header are those from `start` to `end`. */
export function readConnect(bytes: Buffer, start: number, end: number): ConnectPacket | PacketFault {
  const nameEnd = binaryEnd(bytes, start, end)
  if (nameEnd === cutField || nameEnd + 4 > end)
    return broken(4, 'Its CONNECT ends within the variable header (MQTT 3.1.2).')
  const name = bytes.toString('latin1', start + 2, nameEnd)
  if (name !== 'MQTT' && name !== 'MQIsdp')
    return broken(4, `Its CONNECT names the protocol ${quote(name, 20)} [MQTT-3.1.2-1].`)
  const level = bytes[nameEnd]! & ~bridgeBit
  if (level !== 3 && ((level !== 4 && level !== 5) || name === 'MQIsdp'))
    return {
      reason: 'unsupported_level',
      detail: `It asks for protocol level ${bytes[nameEnd]} of ${name}, and gets CONNACK 1 [MQTT-3.1.2-2].`,
    }
  const flags = bytes[nameEnd + 1]!
  const fault = connectFlagsFault(flags, level)
  if (fault !== null) return fault
  const fields = new Fields(bytes, nameEnd + 4, end, level)
  const properties = fields.properties('CONNECT', clientProperties.connect)
  const clientId = fields.text('client id', 'bad_client_id')
  const will = (flags & flagWill) === 0 ? null : fields.will(flags)
  const userName = (flags & flagUserName) === 0 ? null : fields.text('user name', 'bad_user_name')
  const password = (flags & flagPassword) === 0 ? null : fields.binary('password')
  return (
    fields.fault ??
    fields.surplus() ?? {
      version: level,
      clientId,
      clean: (flags & flagClean) !== 0,
      keepaliveS: twoBytesAt(bytes, nameEnd + 2),
      userName,
      password,
      will,
      properties,
    }
  )
}

function connectFlagsFault(flags: number, version: Version): PacketFault | null {
  const willQos = (flags >> 3) & 0b11
  const clause = (of311: number, of5: number) => `[MQTT-3.1.2-${version === 5 ? of5 : of311}]`
  if ((flags & flagReserved) !== 0)
    return broken(version, 'Its CONNECT has the reserved flag [MQTT-3.1.2-3].')
  if ((flags & flagWill) === 0) {
    if (willQos > 0) return broken(version, `Its CONNECT has a will QoS and no will ${clause(13, 11)}.`)
    if ((flags & flagWillRetain) !== 0)
      return broken(version, `Its CONNECT has the will retain flag and no will ${clause(15, 13)}.`)
  } else if (willQos === 3)
    return broken(version, `Its will has QoS 3, which does not exist ${clause(14, 12)}.`, 'bad_will_qos')
  if (version < 5 && (flags & flagPassword) !== 0 && (flags & flagUserName) === 0)
    return broken(
      version,
      'Its CONNECT has a password and no user name [MQTT-3.1.2-22].',
      'password_without_user',
    )
  return null
}

/** Reads one field after another. Behind the first fault all are empty. */
class Fields {
  fault: PacketFault | null = null
  private readonly bytes: Buffer
  private at: number
  private readonly end: number
  private readonly version: Version

  constructor(bytes: Buffer, at: number, end: number, version: Version) {
    this.bytes = bytes
    this.at = at
    this.end = end
    this.version = version
  }

  text(name: string, reason: ClientDropReason): string {
    return this.field(textEndOf(this.version, this.bytes, this.at, this.end), name, reason).toString()
  }

  binary(name: string): Buffer {
    return this.field(binaryEnd(this.bytes, this.at, this.end), name, 'protocol_error')
  }

  will(flags: number): ConnectWill {
    const start = this.at
    this.properties('will', clientProperties.will)
    return {
      section: this.bytes.subarray(start, this.at),
      topic: this.text('will topic', 'bad_will_topic'),
      payload: this.binary('will message'),
      qos: ((flags >> 3) & 0b11) as 0 | 1 | 2,
      retain: (flags & flagWillRetain) !== 0,
    }
  }

  properties(name: string, rules: PropertyRules): ConnectProperties {
    const values = new Map<number, Buffer>()
    const user = new Map<string, string>()
    const { bytes } = this
    if (this.fault !== null || this.version < 5) return { values, user }
    const last = readProperties(bytes, this.at, this.end, rules, (identifier, start, end) => {
      const nameEnd = start + 2 + twoBytesAt(bytes, start)
      if (identifier === userProperty)
        user.set(bytes.toString('utf8', start + 2, nameEnd), bytes.toString('utf8', nameEnd + 2, end))
      else values.set(identifier, bytes.subarray(start, end))
    })
    if (last < 0) this.fault = propertyFault(name, last)
    else this.at = last
    return { values, user }
  }

  surplus(): PacketFault | null {
    if (this.at === this.end) return null
    const clause = this.version === 5 ? '(MQTT 3.1)' : '[MQTT-3.1.3-1]'
    return broken(this.version, `Its CONNECT has ${this.end - this.at} more bytes than its fields ${clause}.`)
  }

  private field(last: number, name: string, reason: ClientDropReason): Buffer {
    if (this.fault !== null) return empty
    if (last < 0) {
      this.fault =
        last === cutField
          ? broken(this.version, `Its CONNECT ends before the end of its ${name} [MQTT-3.1.3-1].`)
          : badText(this.version, last, name, reason)
      return empty
    }
    const bytes = this.bytes.subarray(this.at + 2, last)
    this.at = last
    return bytes
  }
}

const userProperty = 0x26
const empty = Buffer.alloc(0)
