"""What all texts of a kind have in common, so that it can be taken away before two of them are compared.

The vectors of small embedding models crowd in one corner: any two texts look alike. The mean of generic sentences is that
corner. Subtracted, what is left is what a text is about. Queries and passages have means of their own.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memagent.llm import Vector

    Matrix = NDArray[np.float32]

QUERIES = """\
Can you help me with something today?
What do you think I should do next?
How does this work, and why?
Please write a short text for me.
Tell me more about that.
I had a long day and need some advice.
Which of these two would you pick, and how much does it cost?
Thanks, that was exactly what I wanted to know.
Give me a few ideas for the evening.
Why is the result different from what I expected?
Who came up with this, and when did it happen?
Check the following paragraph and make it sound better.
Bạn giúp mình một việc được không?
Theo bạn thì mình nên làm gì bây giờ?
Giải thích cho tôi cái này với.
Viết cho tôi một đoạn ngắn.
Hôm nay mình hơi mệt, có gợi ý nào không?
Cái đó hoạt động như thế nào và giá bao nhiêu?
Cảm ơn, đúng là điều mình cần.
Cho mình vài ý tưởng cho cuối tuần.
Tại sao kết quả lại khác với mong đợi?
Ai nghĩ ra chuyện này và từ khi nào?
Sửa lại câu sau cho hay hơn.
Trong hai cái này nên chọn cái nào?
Bisa bantu saya sebentar?
Menurutmu apa yang sebaiknya saya lakukan?
Tolong jelaskan bagaimana caranya.
Buatkan saya sebuah teks singkat.
Hari ini saya agak bingung, ada saran?
Di mana saya bisa mencari tahu lebih lanjut?
Terima kasih, itu yang saya butuhkan.
Beri saya beberapa ide untuk akhir pekan.
Kenapa hasilnya berbeda dari yang saya harapkan?
Siapa yang menemukan hal ini dan kapan?
Perbaiki kalimat berikut supaya lebih enak dibaca.
Dari dua pilihan ini, mana yang lebih baik dan berapa harganya?
Kannst du mir bei etwas helfen?
Was würdest du mir an meiner Stelle raten?
Erkläre mir bitte, wie das funktioniert.
Schreib mir einen kurzen Text.
Ich hatte heute viel zu tun und brauche einen Tipp.
Wo finde ich mehr darüber?
Danke, genau das wollte ich wissen.
Nenn mir ein paar Ideen für den Abend.
Warum kommt etwas anderes heraus, als ich erwartet habe?
Wer hat sich das ausgedacht, und wann war das?
Überarbeite den folgenden Absatz, damit er besser klingt.
Welches von beiden ist besser, und was kostet es?
""".splitlines()
"""Messages about nothing in particular."""

PASSAGES = """\
The user likes something very much.
The user has a person who is important to them.
The user does this work most days of the week.
The user wants things done in a certain way.
The user lives in a place and owns a few things.
The user is planning something for later this year.
The user's friend has a name and a habit.
The user does not want that.
The user used to do it often and has now stopped.
The user's favourite is the one from long ago.
The user needs it for health reasons.
The user is working on a project with others.
Người dùng rất thích một thứ.
Người dùng có một người thân quan trọng.
Người dùng làm công việc này hằng ngày.
Người dùng muốn mọi việc theo một cách nhất định.
Người dùng sống ở một nơi và có vài món đồ.
Người dùng đang dự định làm một việc trong năm nay.
Bạn của người dùng có một cái tên và một thói quen.
Người dùng không muốn điều đó.
Người dùng trước đây hay làm việc ấy, giờ thì thôi.
Thứ người dùng thích nhất là thứ có từ lâu.
Người dùng cần nó vì lý do sức khỏe.
Người dùng đang thực hiện một dự án cùng người khác.
Pengguna sangat menyukai sesuatu.
Pengguna punya seseorang yang penting baginya.
Pengguna melakukan pekerjaan ini setiap hari.
Pengguna ingin segala sesuatu dilakukan dengan cara tertentu.
Pengguna tinggal di suatu tempat dan memiliki beberapa barang.
Pengguna sedang merencanakan sesuatu untuk tahun ini.
Teman pengguna punya nama dan kebiasaan.
Pengguna tidak mau hal itu.
Pengguna dulu sering melakukannya, sekarang sudah berhenti.
Kesukaan pengguna adalah yang dari dulu.
Pengguna membutuhkannya karena alasan kesehatan.
Pengguna mengerjakan sebuah proyek bersama orang lain.
Der Nutzer mag etwas sehr gern.
Die Nutzerin hat einen Menschen, der ihr wichtig ist.
Der Nutzer macht diese Arbeit an den meisten Tagen.
Die Nutzerin möchte, dass Dinge auf eine bestimmte Weise getan werden.
Der Nutzer wohnt an einem Ort und besitzt ein paar Sachen.
Die Nutzerin plant etwas für später in diesem Jahr.
Der Freund des Nutzers hat einen Namen und eine Gewohnheit.
Die Nutzerin will das nicht.
Der Nutzer hat es früher oft getan und inzwischen aufgehört.
Am liebsten mag die Nutzerin das von früher.
Der Nutzer braucht es aus gesundheitlichen Gründen.
Die Nutzerin arbeitet mit anderen an einem Vorhaben.
""".splitlines()
"""Memories about nothing in particular."""

_SUBJECT = re.compile(
    r"""(?xi)^\s*(?:
        (?:the\s+)?user(?:['\u2019]s)?                     # English
      | (?:der|die)\s+(?:be)?nutzer(?:in)?                 # German
      | người\s+dùng                                       # Vietnamese
      | pengguna                                           # Indonesian
    )\s+(?=\S)"""
)
_CENTRE = files("memagent.llm").joinpath("centre.npy")


def without_subject(text: str) -> str:
    """Drop the subject that nearly every memory starts with; a text of nothing else stays as it is."""
    return _SUBJECT.sub("", text)


@cache
def version() -> str:
    """Name everything that makes centred vectors comparable, in eight hex digits."""
    return hashlib.blake2b(_CENTRE.read_bytes() + _SUBJECT.pattern.encode(), digest_size=4).hexdigest()


@cache
def centre() -> tuple[Vector, Vector, Vector]:
    """Load the means: queries as queries, passages as passages, passages as queries."""
    import numpy as np  # noqa: PLC0415  must not load for the validator

    with _CENTRE.open("rb") as stream:
        means = np.load(stream)
    return means[0], means[1], means[2]


def centred(vectors: Matrix, mean: Vector) -> Matrix:
    """Take `mean` from each row and bring it back to unit length."""
    return unit(vectors - mean)


def unit(vectors: Matrix) -> Matrix:
    """Bring each row to unit length; a row of zeros stays one."""
    import numpy as np  # noqa: PLC0415  must not load for the validator

    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Matrix = (vectors / np.maximum(lengths, np.float32(1e-12))).astype(np.float32)
    return scaled
