import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { configOf, fine, problemsOf } from '../support/config-world.ts'

describe('values from the environment and from files', () => {
  test('replace the reference in any value', async () => {
    const config = await configOf(
      'sources: [{ name: "${env:NAME}-1", topic: "${file:topic.txt}" }]\ndelivery: { max_in_flight: "${env:N}", verify: "${env:V}" }\n',
      { env: { NAME: 'x', N: '7\r\n', V: 'false\n' }, files: { 'topic.txt': 'a/b\n' } },
    )
    expect(config.sources[0]).toMatchObject({ name: 'x-1', topic: 'a/b' })
    expect(config.delivery).toMatchObject({ max_in_flight: 7, verify: false })
  })

  test('stay text where text is required, even when they look like a number', async () => {
    const config = await configOf('sources: [{ name: "${env:A}", topic: "${env:B}" }]', {
      env: { A: '0123', B: 'true' },
    })
    expect(config.sources[0]).toMatchObject({ name: '0123', topic: 'true' })
  })

  test('lose one line feed at the end and no more', async () => {
    const text = ' a \n\r\n'
    const config = await configOf('sources: [{ name: "${file:f}", topic: "${env:E}" }]', {
      files: { f: text },
      env: { E: text },
    })
    expect(config.sources[0]).toMatchObject({ name: ' a \n', topic: ' a \n' })
  })

  test('are not searched for further references', async () => {
    const config = await configOf('sources: [{ name: "${env:A}", topic: t }]', {
      env: { A: '${env:B}', B: 'no' },
    })
    expect(config.sources[0]?.name).toBe('${env:B}')
  })

  test('from a file may have a path with a variable, as systemd provides it', async () => {
    const config = await configOf('delivery: { key: "${file:${env:DIR}/key}" }\n' + fine, {
      env: { DIR: '/run/c' },
      files: { '/run/c/key': 'k\n' },
    })
    expect(config.delivery.key?.reveal()).toBe('k')
  })

  test('are not used for $${, which is a literal ${', async () => {
    const config = await configOf('sources: [{ name: "$${env:A}", topic: "a$b" }]')
    expect(config.sources[0]).toMatchObject({ name: '${env:A}', topic: 'a$b' })
  })

  test('that are missing or misspelt are problems with a position', async () => {
    const text = `
sources:
  - name: \${env:MISSING}
    topic: \${file:missing.txt}
  - { name: "\${HOME}", topic: "\${environment:A}" }
  - { name: "\${env:A", topic: "\${env:}" }
`
    const problems = await problemsOf(text, { env: { A: 'a' } })
    expect(problems).toEqual([
      '3:11 "${env:MISSING}": the environment variable "MISSING" is not set.',
      '4:12 "${file:missing.txt}": the file cannot be read (ENOENT: there is no such file).',
      '5:13 "${HOME}" is neither ${env:NAME} nor ${file:PATH}. Did you mean "${env:HOME}"?',
      '5:31 "${environment:A}" is neither ${env:NAME} nor ${file:PATH}.',
      '6:13 "}" is missing after "${" in "${env:A". For a literal ${ write $${.',
      '6:31 "${env:}" is neither ${env:NAME} nor ${file:PATH}.',
    ])
  })

  test('without quotes inside { } are refused with a hint to quote them', async () => {
    expect(await problemsOf('delivery: { key: ${env:KEY} }\n')).toEqual([
      expect.stringContaining('put it in quotes'),
    ])
  })
})

describe('secrets are never shown', () => {
  const value = 'hunter2-very-secret'

  test('a secret from the environment cannot be printed', async () => {
    const config = await configOf('delivery: { key: "${env:KEY}" }\n' + fine, { env: { KEY: value } })
    expect(config.delivery.key).toBeInstanceOf(Secret)
    expect(JSON.stringify(config)).not.toContain(value)
  })

  test('a secret written in the config is refused and not repeated', async () => {
    const problems = await problemsOf(`delivery: { key: ${value} }\n${fine}`)
    expect(problems).toEqual([
      expect.stringContaining('1:13 delivery.key must come from "${env:NAME}" or "${file:PATH}"'),
    ])
    expect(problems.join('\n')).not.toContain(value)
  })

  test.each([
    ['of a wrong type', 'delivery: { key: 123456789 }', '123456789'],
    ['of a type that is not text', 'delivery: { key: true }', 'true'],
    ['where a duration is required', 'delivery: { timeout: "${env:KEY}" }', value],
    ['where a number is required', 'delivery: { max_in_flight: "${env:KEY}" }', value],
    ['where a number is required, and short', 'delivery: { max_in_flight: "${env:PIN}" }', '999'],
    [
      'where one of several words is required',
      'sources: [{ name: a, topic: t, unknown: "${env:KEY}" }]',
      value,
    ],
    ['instead of a map', 'delivery: "${env:KEY}"', value],
    ['inside another text', 'delivery: { timeout: "x${env:KEY}y" }', value],
    ['in the user part of a URL', 'delivery: { timeout: "https://me:hunter2-very-secret@host/" }', value],
    ['instead of a path', 'delivery: { key: "${file:${env:KEY}}" }', value],
  ])('not %s', async (_, text, hidden) => {
    const problems = await problemsOf(text + '\n', { env: { KEY: value, PIN: '999' } })
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.join('\n')).not.toContain(hidden)
  })

  test('not one written in the config, in a message about another option', async () => {
    const check = () => [{ path: ['sources', 0, 'name'], message: `is the same as the key, ${value}.` }]
    const problems = await problemsOf(`delivery: { key: ${value} }\n${fine}`, { check })
    expect(problems).toHaveLength(2)
    expect(problems.join('\n')).not.toContain(value)
  })

  test('not a substituted one, in a message about another option', async () => {
    const check = () => [
      { path: ['sources', 0, 'name'], message: `is the same as the key, found "${value}".` },
      { path: ['delivery', 'key'], message: 'must be longer, found "ab".' },
    ]
    const problems = await problemsOf('delivery: { key: "${env:KEY}" }\n' + fine, {
      env: { KEY: value },
      check,
    })
    expect(problems.join('\n')).not.toContain(value)
    expect(problems.join('\n')).not.toContain('"ab"')
    expect(problems.join('\n')).toContain('*** (${env:KEY})')
  })
})
