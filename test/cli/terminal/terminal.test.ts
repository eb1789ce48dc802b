import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { printAnswer } from '../../../src/cli/terminal/terminal.ts'
import { keptOutput } from '../../support/ops-world.ts'

describe('an answer that is printed', () => {
  test('does not move the cursor or hide text, whatever a device is called', () => {
    const { stream, text } = keptOutput()
    const io = {
      stdin: Readable.from([]),
      stdout: stream,
      stderr: stream,
      env: {},
      stop: new AbortController().signal,
      onHangUp: () => undefined,
      endWithReader: () => undefined,
    }
    printAnswer(io, {}, 'truck\u001b[2J\u0007\r\u202e7\nnext\n', (name) => name)
    expect(text()).toBe('truck\\u{1b}[2J\\u{7}\\u{d}\\u{202e}7\nnext\n')
  })
})
