// tar-archive.ts: files as a tar archive (ustar), which every system can open.
//
//   header of 512 bytes: name, mode, size in octal, checksum
//   content, padded to 512 bytes; the next file; 1024 zeros at the end

export type ArchiveFile = { name: string; text: string }

const blockBytes = 512
const nameBytesMax = 100

/** `at`: of all files, in seconds. */
export function tarArchive(files: readonly ArchiveFile[], at: number): Buffer {
  const parts = files.flatMap(({ name, text }) => {
    const content = Buffer.from(text)
    const padding = Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes)
    return [headerOf(name, content.length, at), content, padding]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)])
}

function headerOf(name: string, bytes: number, at: number): Buffer {
  if (Buffer.byteLength(name) > nameBytesMax) throw new RangeError(`the name ${name} is too long`)
  const header = Buffer.alloc(blockBytes)
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`
  header.write(name, 0)
  header.write(octal(0o600, 7), 100)
  header.write(octal(0, 7), 108)
  header.write(octal(0, 7), 116)
  header.write(octal(bytes, 11), 124)
  header.write(octal(at, 11), 136)
  // The checksum counts its own field as blanks.
  header.write(' '.repeat(8), 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
