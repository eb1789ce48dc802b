import { describe, expect, test } from 'vitest'
import { parsePasswordFile, withUser } from '../../../src/std/passwords/password-file.ts'

const hash = `$scrypt$ln=12,r=8,p=1$${'a'.repeat(22)}$${'b'.repeat(43)}`

describe('a password file', () => {
  test('has a user and a hash in each line; names may contain colons', () => {
    const { users, problems } = parsePasswordFile(`# fleet\n\ntruck-7:${hash}\nurn:dev:8:${hash}\r\n`)
    expect(problems).toEqual([])
    expect([...users.keys()]).toEqual(['truck-7', 'urn:dev:8'])
  })

  test('is refused with the lines that are wrong, without showing what is in them', () => {
    const { problems } = parsePasswordFile(`a:secret\nb\n:${hash}\nc:${hash}\nc:${hash}\nd\u0007:${hash}`)
    expect(problems.map(({ line }) => line)).toEqual([1, 2, 3, 5, 6])
    expect(JSON.stringify(problems)).not.toMatch(/secret|aaaa/)
  })

  test('keeps its other lines when a user is added, replaced or removed', () => {
    const text = `# fleet\na:${hash}\n`
    expect(withUser(text, 'b', 'x')).toBe(`# fleet\na:${hash}\nb:x\n`)
    expect(withUser(text, 'a', 'x')).toBe('# fleet\na:x\n')
    expect(withUser(text, 'a', null)).toBe('# fleet\n')
    expect(withUser('', 'a', 'x')).toBe('a:x\n')
    expect(withUser(text, 'nobody', null)).toBe(text)
  })
})
