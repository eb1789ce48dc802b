import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { configOf, fine, problemsOf } from '../support/config-world.ts'

describe('values from the environment and from files', () => {
  test('they are put in wherever a value stands', async () => {
    const config = await configOf(
      'sources: [{ name: "${env:NAME}-1", topic: "${file:topic.txt}" }]\ndelivery: { max_in_flight: "${env:N}", verify: "${env:V}" }\n',
      { env: { NAME: 'x', N: '7', V: 'false' }, files: { 'topic.txt': 'a/b\n' } },
    )
    expect(config.sources[0]).toMatchObject({ name: 'x-1', topic: 'a/b' })
    expect(config.delivery).toMatchObject({ max_in_flight: 7, verify: false })
  })

  test('text that looks like a number stays text where text is wanted', async () => {
    const config = await configOf('sources: [{ name: "${env:A}", topic: "${env:B}" }]', {
      env: { A: '0123', B: 'true' },
    })
    expect(config.sources[0]).toMatchObject({ name: '0123', topic: 'true' })
  })

  test('only one line feed at the end of a file is dropped', async () => {
    const config = await configOf('sources: [{ name: "${file:f}", topic: t }]', { files: { f: ' a \n\r\n' } })
    expect(config.sources[0]?.name).toBe(' a \n')
  })

  test('what is put in is not looked at again', async () => {
    const config = await configOf('sources: [{ name: "${env:A}", topic: t }]', {
      env: { A: '${env:B}', B: 'no' },
    })
    expect(config.sources[0]?.name).toBe('${env:B}')
  })

  test('a path may be made of a variable, as systemd gives it', async () => {
    const config = await configOf('delivery: { key: "${file:${env:DIR}/key}" }\n' + fine, {
      env: { DIR: '/run/c' },
      files: { '/run/c/key': 'k\n' },
    })
    expect(config.delivery.key?.reveal()).toBe('k')
  })

  test('a doubled $ keeps ${ as it is', async () => {
    const config = await configOf('sources: [{ name: "$${env:A}", topic: "a$b" }]')
    expect(config.sources[0]).toMatchObject({ name: '${env:A}', topic: 'a$b' })
  })

  test('what is missing or misspelt is a problem with its place', async () => {
    const text = `
sources:
  - name: \${env:MISSING}
    topic: \${file:missing.txt}
  - { name: "\${HOME}", topic: "\${environment:A}" }
  - { name: "\${env:A", topic: "\${env:}" }
`
    const problems = await problemsOf(text, { env: { A: 'a' } })
    expect(problems).toEqual([
      '3:11 "${env:MISSING}": the environment variable "MISSING" is not set',
      '4:12 "${file:missing.txt}": the file cannot be read (ENOENT)',
      '5:13 "${HOME}" is none of ${env:NAME} and ${file:PATH}; did you mean "${env:HOME}"?',
      '5:31 "${environment:A}" is none of ${env:NAME} and ${file:PATH}',
      '6:13 "${" without its "}" in "${env:A"; write $${ where a literal ${ is meant',
      '6:31 "${env:}" is none of ${env:NAME} and ${file:PATH}',
    ])
  })

  test('without quotes inside { } the cure is told', async () => {
    expect(await problemsOf('delivery: { key: ${env:KEY} }\n')).toEqual([
      expect.stringContaining('put quotes around it'),
    ])
  })
})

describe('secrets are never shown', () => {
  const value = 'hunter2-very-secret'

  test('a secret from the environment is one that cannot be printed', async () => {
    const config = await configOf('delivery: { key: "${env:KEY}" }\n' + fine, { env: { KEY: value } })
    expect(config.delivery.key).toBeInstanceOf(Secret)
    expect(JSON.stringify(config)).not.toContain(value)
  })

  test('a secret that stands in the config is refused, without repeating it', async () => {
    const problems = await problemsOf(`delivery: { key: ${value} }\n${fine}`)
    expect(problems).toEqual([
      expect.stringContaining('1:13 delivery.key must come from "${env:NAME}" or "${file:PATH}"'),
    ])
    expect(problems.join('\n')).not.toContain(value)
  })

  test.each([
    ['of a wrong type', 'delivery: { key: 123456789 }', '123456789'],
    ['of a type that is no text at all', 'delivery: { key: true }', 'true'],
    ['where a duration is wanted', 'delivery: { timeout: "${env:KEY}" }', value],
    ['where a number is wanted', 'delivery: { max_in_flight: "${env:KEY}" }', value],
    ['where a number is wanted, and short', 'delivery: { max_in_flight: "${env:PIN}" }', '999'],
    ['where one of few words is wanted', 'sources: [{ name: a, topic: t, unknown: "${env:KEY}" }]', value],
    ['in the place of a map', 'delivery: "${env:KEY}"', value],
    ['inside another text', 'delivery: { timeout: "x${env:KEY}y" }', value],
    ['in the user part of a URL', 'delivery: { timeout: "https://me:hunter2-very-secret@host/" }', value],
    ['in the place of a path', 'delivery: { key: "${file:${env:KEY}}" }', value],
  ])('not %s', async (_, text, hidden) => {
    const problems = await problemsOf(text + '\n', { env: { KEY: value, PIN: '999' } })
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.join('\n')).not.toContain(hidden)
  })

  test("not one that stands in the config, in a section's sentence about another option", async () => {
    const check = () => [{ path: ['sources', 0, 'name'], message: `is the same as the key, ${value}.` }]
    const problems = await problemsOf(`delivery: { key: ${value} }\n${fine}`, { check })
    expect(problems).toHaveLength(2)
    expect(problems.join('\n')).not.toContain(value)
  })

  test("not in a section's own sentence about another option", async () => {
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
