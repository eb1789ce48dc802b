// map-messages.ts: the messages of `map`: files or stdin, lines with topics, or what the daemon has.

import { addAbortSignal } from 'node:stream'
import { systemClock } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import type { Message } from '../../domain/message.ts'
import { printNote, type CommandIo } from '../terminal/terminal.ts'
import { takeDeadLetters, takeFromTap } from './daemon-messages.ts'
import { messagesIn, stdinName } from './map-input.ts'
import type { MapOptions } from './map-options.ts'
import { recordedMessage } from './recorded-messages.ts'

/** Calls `take` with each message, until it returns false. `topic`: of messages that do not say theirs. */
export async function takeMessages(
  io: CommandIo,
  files: readonly string[],
  { options, topic = '' }: { options: MapOptions; topic: string | undefined },
  take: (message: Message) => Promise<boolean>,
): Promise<void> {
  const { client, ndjson, fromDeadLetters, fromTap, lines } = options
  let left = options.count ?? Number.POSITIVE_INFINITY
  let number = 0
  const skipped = new Map<string, number>()
  if (fromDeadLetters === true) await takeDeadLetters(options, io, takeLine)
  else if (fromTap === true) await takeFromTap(options, io, takeLine)
  else await takeInput()
  for (const [why, count] of skipped) printNote(io, `${plural(count, 'line')} skipped: ${why}.`)

  async function takeInput(): Promise<void> {
    // A wait for the next line of stdin ends at a stop, too.
    if (files.length === 0 || files.includes(stdinName)) addAbortSignal(io.stop, io.stdin)
    try {
      for await (const bytes of messagesIn(files, io.stdin, lines === true || ndjson === true)) {
        const goesOn = ndjson === true ? await takeLine(bytes.toString()) : await takeOne(bytes)
        if (!goesOn) break
      }
    } catch (error) {
      if (!io.stop.aborted) throw error
    }
  }

  function takeOne(bytes: Buffer): Promise<boolean> {
    const { sender, retain, nowMs: arrivedAt } = defaults()
    return counted({ topic, bytes, qos: 1, retain, dup: false, sender, arrivedAt })
  }

  async function takeLine(text: string): Promise<boolean> {
    number += 1
    if (text.trim() === '') return true
    const line = recordedMessage(text, number, { ...defaults(), topic: topic === '' ? undefined : topic })
    if (line.kind === 'message') return counted(line.message)
    if (line.why !== '') skipped.set(line.why, (skipped.get(line.why) ?? 0) + 1)
    return true
  }

  async function counted(message: Message): Promise<boolean> {
    left -= 1
    return (await take(message)) && left > 0 && !io.stop.aborted
  }

  function defaults() {
    // A preset may take the device from any name of the sender.
    const unnamed = options.preset === undefined ? null : client
    const { user = unnamed, certificate = unnamed, identity = unnamed, retain = false } = options
    const sender = { clientId: client, userName: user, certificateName: certificate, identity }
    return { sender, retain, nowMs: systemClock.now() }
  }
}
