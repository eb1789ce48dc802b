import { describe, expect, test } from 'vitest'
import { configSchema } from '../../src/config/config.ts'
import { referenceText, schemaText } from '../../src/config/config-reference.ts'
import { nearest } from '../../src/config/suggestion.ts'

describe('the reference', () => {
  const text = referenceText(configSchema)
  const entry = (path: string) => text.split(/^#+ /m).find((part) => part.startsWith(`\`${path}\`\n`)) ?? ''

  test('shows type, default and description of an option', () => {
    expect(entry('delivery.max_in_flight')).toContain(
      'whole number, 1 to 64 · default `4`\n\nBatches sent at once.',
    )
    expect(entry('delivery.timeout')).toContain('duration · default `30s`')
    expect(entry('spool.max_bytes')).toContain('size · default `20GiB`')
    expect(entry('delivery.base_url')).toContain('**required**')
    expect(entry('ingest.broker.listeners[].url')).not.toBe('')
    expect(entry('delivery.errors.<name>')).not.toBe('')
    expect(entry('delivery.credentials.secret_access_key')).toContain('secret')
  })

  test('leaves no option without a word about it', () => {
    const silent = text
      .split(/^### /m)
      .slice(1)
      .filter((part) => part.trim().split('\n').length < 3)
    // A name and a password say what they are by their names.
    expect(silent.map((part) => part.split('\n', 1)[0]).length).toBeLessThan(20)
  })

  test('has a JSON Schema for editors', () => {
    const schema = JSON.parse(schemaText(configSchema)) as Record<string, unknown>
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      additionalProperties: false,
      required: expect.arrayContaining(['sources', 'delivery']),
    })
  })
})

describe('the suggestion for a misspelt word', () => {
  const known = ['topic', 'max_bytes', 'min_free_bytes', 'max_in_flight', 'url', 'users']
  test.each([
    ['topics', 'topic'],
    ['tpoic', 'topic'],
    ['Topic', 'topic'],
    ['max_byte', 'max_bytes'],
    ['maxbytes', 'max_bytes'],
    ['max_inflight', 'max_in_flight'],
    ['free_bytes', 'min_free_bytes'],
    ['user', 'users'],
    ['colour', undefined],
    ['x'.repeat(10_000), undefined],
    ['', undefined],
  ])('%.20s: %s', (word, meant) => {
    expect(nearest(word, known)).toBe(meant)
  })
})
