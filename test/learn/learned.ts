// learned.ts: what `learn` proposes for messages, with all packaged presets.

import { readFile } from 'node:fs/promises'
import { createMappingReader, packagedNames } from '../../src/config/config.ts'
import type { Message } from '../../src/domain/message.ts'
import { createCollector, propose, type Proposed } from '../../src/learn/learn.ts'
import type { MappingConfig } from '../../src/mapping/config.ts'
import { messageOf, sender } from '../support/mapping-world.ts'

const read = createMappingReader({ env: {}, readText: (path) => readFile(path, 'utf8') })

/** By source, since every test tries the same presets. */
const mappings = new Map<string, Promise<MappingConfig | null>>()

function mappingOf(source: Readonly<Record<string, unknown>>): Promise<MappingConfig | null> {
  const key = JSON.stringify(source)
  const known = mappings.get(key) ?? read(source).then((one) => (one.kind === 'config' ? one.config : null))
  mappings.set(key, known)
  return known
}

/** As the listener of `learn` takes it. */
export function heardOf(message: unknown, rest: Partial<Message>): Message {
  return messageOf(message, { sender: { ...sender, clientId: 'learn' }, ...rest })
}

export function learned(messages: readonly Message[]): Promise<Proposed> {
  const collector = createCollector()
  for (const message of messages) collector.take(message)
  const signal = new AbortController().signal
  return propose(collector.traffic(), { presets: packagedNames(), signal, mappingOf })
}
