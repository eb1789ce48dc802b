// addition-answers.ts: what `init --add-source` and `--add-provider` must know: from options, and for what
// they do not say from a person at a terminal.

import { openQuestions } from '../terminal/questions.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import type { NewProvider, NewSource } from './config-additions.ts'
import { givenBy, presetName, serviceUrl, text, valueOf, type SetupOptions } from './setup-answers.ts'

/** Rejects with USAGE. */
export async function completeAddition(
  io: CommandIo,
  options: SetupOptions,
): Promise<{ source: NewSource | null; provider: Omit<NewProvider, 'keys'> | null }> {
  const isTerminal = (io.stdin as { isTTY?: boolean }).isTTY === true
  const questions = isTerminal && options.input ? openQuestions(io) : null
  try {
    const given = givenBy(questions)
    const maybe = (name: string, option: string | undefined, question: string) =>
      given(name, option, { text: question, fallback: '', parse: text })
    let provider: Omit<NewProvider, 'keys'> | null = null
    if (options.addProvider !== undefined) {
      const service = options.service === undefined ? null : valueOf('--service', serviceUrl(options.service))
      const key = 'X-Provider-Key of the new provider (Enter: none)'
      const providerKey = await maybe('--provider-key', options.providerKey, key)
      provider = { name: options.addProvider, service, providerKey }
    }
    if (options.addSource === undefined) return { source: null, provider }
    const preset = await given('--preset', options.preset, {
      text: 'How the devices send: a preset (? lists them), or json',
      parse: presetName,
    })
    const standard = preset === null ? 'telemetry/NAME/{device}' : 'Enter: that of the preset'
    const topic = await maybe('--topic', options.topic, `Topic of the devices (${standard})`)
    const own = `telemetry/${options.addSource}/{device}`
    return {
      source: {
        name: options.addSource,
        preset,
        topic: topic ?? (preset === null ? own : null),
        model: options.model ?? null,
        provider: await maybe('--provider', options.provider, 'Provider of the devices (Enter: not named)'),
      },
      provider,
    }
  } finally {
    questions?.close()
  }
}
