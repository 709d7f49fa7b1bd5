"""Writes the recordings of this folder. Nobody drove or moved here: formulas did.

    python3 generate.py
"""

import math

def gpx():
    """Ninety minutes around a made-up valley at one point per second, with what receivers leave in their files."""
    out = ['\ufeff<?xml version="1.0" encoding="UTF-8"?>',
           '<gpx version="1.1" creator="generate.py" xmlns="http://www.topografix.com/GPX/1/1"'
           ' xmlns:tp="http://example.org/TrackPoint/1">',
           ' <metadata><time>2024-05-04T06:59:58Z</time></metadata>',
           ' <wpt lat="45.9000000" lon="7.1000000"><name>Car park</name></wpt>',
           ' <trk><name>Made-up valley</name>',
           '  <trkseg></trkseg>']
    clock = 7 * 3600
    for segment, count in enumerate((1800, 2400, 1200)):
        out.append('  <trkseg>')
        for i in range(count):
            t = segment * 2400 + i
            lat = 45.9 + 0.03 * math.sin(t / 900) + 0.0004 * math.sin(t / 37)
            lon = 7.1 + 0.05 * math.cos(t / 1100) + 0.0004 * math.cos(t / 41)
            ele = 900 + 250 * math.sin(t / 1500)
            stamp = '2024-05-04T%02d:%02d:%02d.%03dZ' % (clock // 3600, clock // 60 % 60, clock % 60, (t * 7) % 1000)
            out.append(f'   <trkpt lat="{lat:.7f}" lon="{lon:.7f}"><ele>{ele:.1f}</ele><time>{stamp}</time>'
                       f'<extensions><tp:time>not ours</tp:time><tp:speed>{8 + 3 * math.sin(t / 60):.2f}</tp:speed>'
                       '</extensions></trkpt>')
            clock += 1
        out.append('  </trkseg>')
        clock += 300
    out += [' </trk>', '</gpx>']
    open('valley.gpx', 'w', encoding='utf-8').write('\r\n'.join(out) + '\r\n')

def attitude(t):
    return (0.4 * math.sin(t * 2.1) - 1.2, 0.3 * math.sin(t * 1.3 + 1), 2.0 * math.sin(t * 0.1))

def motionsense():
    """Sixty seconds in the columns of MotionSense: an index without a name first, no times."""
    names = ['', 'attitude.roll', 'attitude.pitch', 'attitude.yaw', 'gravity.x', 'gravity.y', 'gravity.z',
             'rotationRate.x', 'rotationRate.y', 'rotationRate.z', 'userAcceleration.x', 'userAcceleration.y',
             'userAcceleration.z']
    with open('walk-motionsense.csv', 'w') as file:
        file.write(','.join(names) + '\n')
        for i in range(3000):
            pitch, roll, yaw = attitude(i / 50)
            rest = [0.1, 0.9, -0.2] + [math.sin(i / 9 + k) for k in range(6)]
            file.write(','.join([str(i)] + ['%.6f' % v for v in [roll, pitch, yaw] + rest]) + '\n')

def sensingkit():
    """Thirty seconds at 100 Hz in the columns of SensingKit: a quoted date and a number of seconds."""
    names = ['timestamp', 'timeIntervalSince1970', 'attitude.roll', 'attitude.pitch', 'attitude.yaw', 'gravity.x',
             'gravity.y', 'gravity.z']
    with open('desk-sensingkit.csv', 'w', newline='') as file:
        file.write(','.join(names) + '\r\n')
        for i in range(3000):
            pitch, roll, yaw = attitude(i / 100)
            stamp = '"4 May 2024, 07:00:%02d.%03d"' % (i // 100, i % 100 * 10)
            file.write(','.join([stamp, '%.6f' % (1714806000 + i / 100)]
                                + ['%.6f' % v for v in (roll, pitch, yaw, 0.1, 0.9, -0.2)]) + '\r\n')

gpx()
motionsense()
sensingkit()
