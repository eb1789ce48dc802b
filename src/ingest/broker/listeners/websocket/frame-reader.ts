// frame-reader.ts: takes the bytes of MQTT out of the frames of a WebSocket (RFC 6455, section 5.2).
//
//   chunk of the network   [head|mask|payload][head|mask|payl...     ...oad][ping][head|mask|payload]
//   after `read`           [payload][payl...                         [oad][payload]
//
// The end of a frame means nothing to MQTT [MQTT-6.0.0-2], so nothing waits for it: payload is unmasked
// where it stands, moved to the begin of its chunk, and passed on at once. A frame needs no memory,
// however large it is and however slowly it comes; the limits for packets are the only ones. What is
// kept is the head of a frame, or a control frame: 131 bytes at most.

export type FrameFault = { reason: 'websocket_text' | 'websocket_protocol'; detail?: string }

export type FrameReader = {
  /** Moves the payload in `chunk` to its start, returns its length. Ignores what is behind a close frame. */
  read(chunk: Buffer): number
  /** Nothing behind it is read. */
  readonly fault: FrameFault | null
  /** The bytes of the close frame, where it came. */
  readonly closeFrame: Buffer | null
}

/** Each returns false where nothing more is to be read. */
export type FrameReaderCalls = {
  /** The bytes of a ping or pong. */
  controlFrame(bytes: Buffer): boolean
  /** A frame without payload. */
  emptyFrame(): boolean
}

const continuation = 0
const text = 1
const binary = 2
const close = 8
const ping = 9
const pong = 10

const maskBytes = 4
const controlPayloadMax = 125
/** Of a frame with data. */
const headBytesMax = 2 + 8 + maskBytes

export function createFrameReader(calls: FrameReaderCalls): FrameReader {
  return new MaskedFrames(calls)
}

/** A class, because there is one for each connection (gate.ts). */
class MaskedFrames implements FrameReader {
  fault: FrameFault | null = null
  closeFrame: Buffer | null = null
  private readonly calls: FrameReaderCalls
  /** The head of the frame in work: at most 14 bytes. A control frame gets more, for its payload. */
  private head = Buffer.alloc(headBytesMax)
  private headEnd = 0
  /** Of the head, as far as it is known. */
  private headBytes = 2
  private payloadLeft = 0
  /** Position in the mask. */
  private masked = 0
  private maskAt = 0
  private inMessage = false
  private stopped = false

  constructor(calls: FrameReaderCalls) {
    this.calls = calls
  }

  read(chunk: Buffer): number {
    let at = 0
    let end = 0
    while (at < chunk.length && !this.stopped) {
      if (this.payloadLeft > 0) {
        const count = Math.min(this.payloadLeft, chunk.length - at)
        this.unmask(chunk, { from: at, to: end, count })
        at += count
        end += count
        this.payloadLeft -= count
      } else {
        this.head[this.headEnd] = chunk[at]!
        this.headEnd += 1
        at += 1
        if (this.headEnd === this.headBytes) this.stopped = !this.readHead()
      }
    }
    return end
  }

  private unmask(bytes: Buffer, { from, to, count }: { from: number; to: number; count: number }): void {
    const { head, maskAt, masked } = this
    for (let index = 0; index < count; index += 1)
      bytes[to + index] = bytes[from + index]! ^ head[maskAt + ((masked + index) & 3)]!
    this.masked = (masked + count) & 3
  }

  /** As far as the head came, it is known how long it is. False where nothing more is to be read. */
  private readHead(): boolean {
    const { head } = this
    const opcode = head[0]! & 0x0f
    if (this.headEnd === 2) {
      this.fault = this.faultOf(opcode)
      if (this.fault !== null) return false
      this.headBytes = headBytesOf(opcode, head[1]! & 0x7f)
      if (this.headBytes > headBytesMax) this.head = Buffer.concat([head], this.headBytes)
      return true
    }
    const bytes = this.headBytes
    this.headEnd = 0
    this.headBytes = 2
    return opcode >= close ? this.takeControl(opcode, bytes) : this.beginPayload(bytes)
  }

  private beginPayload(bytes: number): boolean {
    const { head } = this
    this.maskAt = bytes - maskBytes
    this.masked = 0
    this.inMessage = (head[0]! & 0x80) === 0
    const short = head[1]! & 0x7f
    if (short < 126) this.payloadLeft = short
    else if (short === 126) this.payloadLeft = head.readUInt16BE(2)
    else {
      if (head[2]! >= 0x80) {
        this.fault = protocolFault('The length of a frame has more than 63 bits.')
        return false
      }
      // Not exact above 2^53, which no connection reaches.
      this.payloadLeft = head.readUInt32BE(2) * 2 ** 32 + head.readUInt32BE(6)
    }
    return this.payloadLeft > 0 || this.calls.emptyFrame()
  }

  private takeControl(opcode: number, length: number): boolean {
    const bytes = Buffer.from(this.head.subarray(0, length))
    if (this.head.length > headBytesMax) this.head = Buffer.alloc(headBytesMax)
    if (opcode !== close) return this.calls.controlFrame(bytes)
    this.closeFrame = bytes
    return false
  }

  private faultOf(opcode: number): FrameFault | null {
    const [first = 0, second = 0] = this.head
    const length = second & 0x7f
    if ((first & 0x70) !== 0) return protocolFault('A reserved bit of a frame is set.')
    if ((second & 0x80) === 0) return protocolFault('A frame has no mask.')
    if (opcode === close || opcode === ping || opcode === pong) {
      if (length > controlPayloadMax) return protocolFault('A control frame is larger than 125 bytes.')
      return (first & 0x80) === 0 ? protocolFault('A control frame is not whole.') : null
    }
    if (opcode === continuation)
      return this.inMessage ? null : protocolFault('Nothing precedes a continuation.')
    if (opcode === text) return { reason: 'websocket_text' }
    if (opcode !== binary) return protocolFault(`The type of a frame, ${opcode}, is not defined.`)
    return this.inMessage ? protocolFault('A message begins within another one.') : null
  }
}

function protocolFault(sentence: string): FrameFault {
  return { reason: 'websocket_protocol', detail: `It broke the WebSocket protocol. ${sentence}` }
}

/** A control frame counts with its payload. */
function headBytesOf(opcode: number, short: number): number {
  if (opcode >= close) return 2 + maskBytes + short
  if (short < 126) return 2 + maskBytes
  return (short === 126 ? 4 : 10) + maskBytes
}
